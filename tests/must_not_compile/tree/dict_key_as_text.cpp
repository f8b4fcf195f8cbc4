// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a key is part of a dict's type, so a plain string cannot name it; append _k to the string, with `using namespace fanout::literals`
#include <fanout/fanout.hpp>
using namespace fanout::literals;

int main() {
  const auto dict = fanout::dict("image"_k = 1, "noise"_k = 0);
#ifdef FANOUT_CONTROL
  static_cast<void>(dict["noise"_k]);
#else
  static_cast<void>(dict["noise"]);
#endif
}
