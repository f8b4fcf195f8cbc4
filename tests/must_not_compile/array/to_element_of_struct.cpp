// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the members of a struct keep their types, so to<T>(x) cannot convert them; make the struct a template
#include <fanout/array/to_element.hpp>
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
template <class T>
struct WeightsOf {
  fanout::Tensor<T, 1> x;
};
using Weights = WeightsOf<float>;
#else
struct Weights {
  fanout::Tensor<float, 1> x;
};
#endif

int main() {
  const auto converted = fanout::to<double>(Weights{fanout::Tensor<float, 1>(3)});
  return converted.x.empty() ? 1 : 0;
}
