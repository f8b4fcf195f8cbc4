// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: get_if takes the type of an exception, a class or a number: a thrown pointer is copied when it is caught, so there is nothing to point at; call rethrow() and catch the pointer
#include <fanout/data/load_error.hpp>

struct Failed {};

bool has_failed(const fanout::LoadError& error) {
#ifdef FANOUT_CONTROL
  return error.get_if<Failed>() != nullptr;
#else
  return error.get_if<Failed*>() != nullptr;
#endif
}

int main() {}
