// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a key has one to 64 characters
#include <fanout/fanout.hpp>

using namespace fanout::literals;

int main() {
#ifdef FANOUT_CONTROL
  const auto key = "a name of sixty-four letters and no more, which is a long name!!"_k;
#else
  const auto key = "a name of sixty-five letters and no more, which is a long name!!!"_k;
#endif
  (void)key;
}
