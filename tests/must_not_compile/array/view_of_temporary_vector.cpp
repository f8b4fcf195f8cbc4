// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a view of a temporary would dangle
#include <vector>

#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const std::vector<float> vector(4);
  const fanout::View<const float, 1> view = vector;
#else
  const fanout::View<const float, 1> view = std::vector<float>(4);
#endif
  return view.empty() ? 1 : 0;
}
