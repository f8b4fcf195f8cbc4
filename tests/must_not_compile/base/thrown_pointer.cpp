// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: get_if takes the type of an exception, a class or a number: a thrown pointer is copied when it is caught, so there is nothing to point at; call rethrow() and catch the pointer
#include <fanout/call/replica_error.hpp>

bool is_text(const fanout::ReplicaError& error) {
#ifdef FANOUT_CONTROL
  return error.get_if<int>() != nullptr;
#else
  return error.get_if<const char*>() != nullptr;
#endif
}

int main() {}
