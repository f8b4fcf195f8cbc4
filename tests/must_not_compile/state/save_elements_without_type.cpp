// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: save() and load() take arrays of numbers
// expect: Point
#include <fanout/state.hpp>

struct Point {
  float x, y;
};

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Tensor<float, 1> tensor;
#else
  const fanout::Tensor<Point, 1> tensor;
#endif
  fanout::save("file", tensor);
}
