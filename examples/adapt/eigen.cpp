// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Least squares with Eigen: each device adds up its rows' part of the normal equations, psum adds up the devices', and
// the caller solves them. A second model applies the solution to the rows.

#include <Eigen/Cholesky>
#include <cstdio>
#include <fanout/adapt/eigen.hpp>
#include <fanout/fanout.hpp>
#include <tuple>

using Eigen::MatrixXd;
using Eigen::VectorXd;

int main() {
  MatrixXd x(1000, 3);
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const auto t = static_cast<double>(i) / 1000;
    x.row(i) << 1, t, t * t;
  }
  const VectorXd y = x * Eigen::Vector3d(0.5, -2, 3);
  const auto devices = fanout::host_devices(2);

  // [eigen]
  // A matrix goes in by rows: each device sees its part of it as an Eigen::Map, in place. So do vectors.
  const fanout::ParallelModel normal_equations{
      [](const fanout::EigenRows<MatrixXd>& rows, const fanout::EigenRows<VectorXd>& values) {
        const MatrixXd gram = rows.transpose() * rows;
        const VectorXd moment = rows.transpose() * values;
        return std::tuple{fanout::psum(gram), fanout::psum(moment)};
      },
      devices};
  const auto [gram, moment] = normal_equations(x, y);
  const VectorXd solution = gram.ldlt().solve(moment);

  // What is known as an Eigen::Ref takes the rows as well. Matrices come out by rows.
  const fanout::ParallelModel residuals{
      [&solution](const Eigen::Ref<const MatrixXd>& rows, const Eigen::Ref<const VectorXd>& values) -> VectorXd {
        return values - rows * solution;
      },
      devices};
  const VectorXd errors = residuals(x, y);
  // [/eigen]

  std::printf("y = %.2f %+.2f t %+.2f t^2, largest error of %d: %.4f\n", solution[0], solution[1], solution[2],
              static_cast<int>(errors.size()), errors.cwiseAbs().maxCoeff());
}
