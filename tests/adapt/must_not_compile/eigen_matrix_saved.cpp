// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: save() and load() take no matrices of other libraries
#include <fanout/adapt/eigen.hpp>
#include <fanout/state.hpp>

int main() {
  const Eigen::MatrixXd matrix(4, 3);
#ifdef FANOUT_CONTROL
  fanout::save("file", fanout::as_view(matrix.transpose()));
#else
  fanout::save("file", matrix);
#endif
}
