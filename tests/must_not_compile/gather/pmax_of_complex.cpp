// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a rule cannot gather the value that forward returns under it
// expect: pmax and pmin ordered ones
// expect: rules::Max, std::complex<float>
#include <complex>
#include <map>
#include <string>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) {
#ifdef FANOUT_CONTROL
    return fanout::pmax(std::map<std::string, float>{{"x", x[0]}});
#else
    return fanout::pmax(std::map<std::string, std::complex<float>>{{"x", x[0]}});
#endif
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
