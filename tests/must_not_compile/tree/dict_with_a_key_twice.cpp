// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a dict has each key once
#include <fanout/fanout.hpp>
using namespace fanout::literals;

int main() {
#ifdef FANOUT_CONTROL
  const auto dict = fanout::dict("a"_k = 1, "b"_k = 2);
#else
  const auto dict = fanout::dict("a"_k = 1, "a"_k = 2);
#endif
  (void)dict;
}
