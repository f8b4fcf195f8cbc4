// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 16 models of different types, each called; by async() if ASYNCHRONOUS is defined. benchmarks/compile_time/run
// measures what they cost to compile.

#include <cstddef>
#include <cstdio>
#include <fanout/fanout.hpp>
#include <utility>

template <std::size_t Number>
struct Scale {
  float factor;

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> input) const {
    auto output = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < input.size(); ++i) output[i] = factor * input[i];
    return output;
  }
};

template <std::size_t Number>
float first_of() {
  const fanout::ParallelModel model{Scale<Number>{Number}, fanout::host_devices(2)};
  fanout::Tensor<float, 1> input(2);
  input[0] = 1;
#ifdef ASYNCHRONOUS
  return model.async(input).get()[0];
#else
  return model(input)[0];
#endif
}

template <std::size_t... Number>
float sum(std::index_sequence<Number...>) {
  return (first_of<Number>() + ...);
}

int main() {
  const float all = sum(std::make_index_sequence<16>());
  std::printf("%g\n", static_cast<double>(all));
  return all == 120 ? 0 : 1;
}
