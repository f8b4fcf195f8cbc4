// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: an Eigen expression has no rows in memory to split; pass (a * b).eval(), or broadcast(x) if every replica needs all of it
#include <fanout/adapt/eigen.hpp>
#include <fanout/fanout.hpp>

int main() {
  const Eigen::MatrixXd x(4, 3);
  const fanout::ParallelModel model{[](const fanout::EigenRows<Eigen::MatrixXd>& rows) { return rows.rows(); }};
#ifdef FANOUT_CONTROL
  model((2 * x).eval());
#else
  model(2 * x);
#endif
}
