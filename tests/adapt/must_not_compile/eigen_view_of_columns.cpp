// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a View is row-major, and this matrix is column-major; make it an Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, or view its columns with as_view(m.transpose())
#include <fanout/adapt/eigen.hpp>

int main() {
  const Eigen::MatrixXd x(4, 3);
#ifdef FANOUT_CONTROL
  const fanout::View<const double, 2> view = fanout::as_view(x.transpose());
#else
  const fanout::View<const double, 2> view = fanout::as_view(x);
#endif
  return static_cast<int>(view.extent(0));
}
