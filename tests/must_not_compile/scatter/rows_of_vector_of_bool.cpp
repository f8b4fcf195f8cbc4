// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: rows(x) takes a std::vector, a std::array or a std::span, whose elements are contiguous
#include <vector>

#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const std::vector<char> flags(3);
#else
  const std::vector<bool> flags(3);
#endif
  fanout::rows(flags);
}
