// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward returns an Eigen expression, which refers to matrices that are gone when it is computed; return what it is, (a * b).eval(), or name the type that forward returns
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
