// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A result of 20 leaves, five levels deep, of every kind of container and rule. benchmarks/compile_time/run measures
// what it costs to compile.

#include <cstdio>
#include <fanout/fanout.hpp>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace fanout::literals;

struct Scores {
  fanout::Tensor<float, 1> best;
  fanout::Tensor<int, 1> label;
};

struct Nested {
  float factor;

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> input) const {
    const std::size_t rows = input.extent(0);
    auto output = fanout::output<float>(ctx, input.extent(1));
    float total = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < input.extent(1); ++k) total += output(i, k) = factor * input(i, k);
    }
    const fanout::Tensor<float, 1> ones(rows);
    const std::optional said{std::tuple{ones, std::vector<std::string>(rows, "word"), total}};
    const auto layer = [&] { return fanout::dict("weight"_k = std::pair{output, ones}, "bias"_k = ones); };
    return fanout::dict(
        "image"_k = std::tuple{fanout::dict("boxes"_k = std::pair{Scores{ones, fanout::Tensor<int, 1>(rows)}, output},
                                            "mask"_k = fanout::Tensor<float, 2>(rows, 3)),
                               std::vector<int>(rows, ctx.size() == 0 ? 0 : 1)},
        "text"_k =
            std::map<std::string,
                     std::vector<std::optional<std::tuple<fanout::Tensor<float, 1>, std::vector<std::string>, float>>>>{
                {"said", {said, said}}},
        "state"_k = fanout::dict("layers"_k = std::tuple{layer(), layer()}),
        "losses"_k = fanout::dict("mean"_k = fanout::pmean(total), "rows"_k = fanout::psum(rows),
                                  "parts"_k = std::tuple{fanout::pmax(total), fanout::first(total),
                                                         fanout::stack(fanout::Tensor<float, 1>(4))}),
        "step"_k = 1);
  }
};

int main() {
  fanout::Tensor<float, 2> input(6, 2);
  for (float value = 0; float& x : input) x = value++;
  const fanout::ParallelModel model{Nested{2}, fanout::host_devices(3)};
  const auto result = model(input);

  const auto& output = std::get<0>(result["image"_k])["boxes"_k].second;
  const auto& words = std::get<1>(*result["text"_k].at("said")[1]);
  const bool right = output(5, 1) == 22 && words.size() == 6 && result["losses"_k]["rows"_k] == 6 &&
                     std::get<1>(result["state"_k]["layers"_k])["weight"_k].second.size() == 6;
  std::puts(right ? "all as it should be" : "something is wrong");
  return right ? 0 : 1;
}
