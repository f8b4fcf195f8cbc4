// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: load() writes into the tree, and a part of it is a text that only reads
#include <string>
#include <string_view>

#include <fanout/state.hpp>

int main() {
#ifdef FANOUT_CONTROL
  std::string text;
#else
  std::string_view text;
#endif
  fanout::load("file", text);
}
