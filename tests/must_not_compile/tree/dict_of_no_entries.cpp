// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: dict takes only entries, and got another type (this diagnostic shows it)
// expect: double
#include <fanout/fanout.hpp>
using namespace fanout::literals;

int main() {
#ifdef FANOUT_CONTROL
  static_cast<void>(fanout::dict("image"_k = 1.0));
#else
  static_cast<void>(fanout::dict(1.0));
#endif
}
