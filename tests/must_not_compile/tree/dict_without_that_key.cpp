// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: this dict has no such key; this diagnostic shows the key and those of the dict
// expect: 'n', 'o', 's', 'i', 'e'
// expect: 'i', 'm', 'a', 'g', 'e'
#include <fanout/fanout.hpp>
using namespace fanout::literals;

int main() {
  const auto dict = fanout::dict("image"_k = 1, "noise"_k = 0);
#ifdef FANOUT_CONTROL
  return dict["noise"_k];
#else
  return dict["nosie"_k];
#endif
}
