// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward returns an Eigen expression, and its matrices are destroyed before it is evaluated; return (a * b).eval(), or declare the return type of forward
#include <fanout/adapt/eigen.hpp>
#include <fanout/fanout.hpp>

int main() {
  const Eigen::MatrixXd weight(3, 2);
  const fanout::ParallelModel model{[&weight](const fanout::EigenRows<Eigen::MatrixXd>& x) {
#ifdef FANOUT_CONTROL
    return (x * weight).eval();
#else
    return x * weight;
#endif
  }};
  const Eigen::MatrixXd result = model(Eigen::MatrixXd(4, 3));
}
