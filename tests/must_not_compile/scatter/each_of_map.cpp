// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: each(x) takes a std::vector or a std::span
#include <map>
#include <vector>

#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  fanout::each(std::vector<int>());
#else
  fanout::each(std::map<int, int>());
#endif
}
