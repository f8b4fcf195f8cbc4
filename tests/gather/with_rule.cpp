// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/fanout.hpp>

using namespace fanout::literals;
using fanout::Context;
using fanout::gathered_t;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

TEST_CASE("the rules of the documentation") {
  ParallelModel model{[](Context auto& ctx, View<const float, 2> input) {
                        auto scores = fanout::output<float>(ctx, input.extent(1));
                        for (std::size_t i = 0; i < scores.size(); ++i) scores.data()[i] = input.data()[i];
                        const float loss = input(0, 0);
                        const int hits = static_cast<int>(input.extent(0));
                        Tensor<float, 2> columns(2, input.extent(0));
                        const Tensor<float, 1> histogram(3);
                        const std::string labels = "labels";
                        using namespace fanout;
                        // [rules]
                        return dict("scores"_k = scores,       // by rows
                                    "losses"_k = loss,         // one number per shard
                                    "loss"_k = pmean(loss),    // the mean over all rows
                                    "correct"_k = psum(hits),  // added up
                                    "worst"_k = pmax(loss),    // the greatest, and pmin the least
                                    "odd"_k = reduce(hits % 2, [](auto a, auto b) { return a ^ b; }),
                                    "labels"_k = first(labels),         // as the first shard returned it
                                    "histograms"_k = stack(histogram),  // [shards, 3]
                                    "columns"_k = concat<1>(columns));  // [2, rows]
                        // [/rules]
                      },
                      host_devices(2)};
  Tensor<float, 2> input(13, 4);
  input(0, 0) = 1;
  input(7, 0) = 14;
  const auto result = model(input);
  CHECK(result["scores"_k].extents() == fanout::Extents<2>{13, 4});
  CHECK(result["losses"_k].size() == 2);
  CHECK(result["loss"_k] == doctest::Approx(7));
  CHECK(result["correct"_k] == 13);
  CHECK(result["worst"_k] == 14);
  CHECK(result["odd"_k] == 1);
  CHECK(result["labels"_k] == "labels");
  CHECK(result["histograms"_k].extents() == fanout::Extents<2>{2, 3});
  CHECK(result["columns"_k].extents() == fanout::Extents<2>{2, 13});
}

TEST_CASE("a rule inside a rule takes precedence in its own tree, at any depth") {
  ParallelModel model{[](Context auto& ctx, View<const float, 2> x) {
                        const int rank = static_cast<int>(ctx.rank());
                        struct Part {
                          int sum;
                          fanout::First<int> first;
                          fanout::Max<int> greatest;
                        };
                        return fanout::psum(std::tuple{
                            1, fanout::first(std::tuple{rank, fanout::pmax(std::vector{rank, -rank}), rank}),
                            fanout::stack(std::vector{rank}), fanout::concat<1>(x), Part{1, rank + 5, rank}, 1});
                      },
                      host_devices(3)};
  const auto [sum, inner, stacked, columns, part, last] = model(Tensor<float, 2>(6, 2));
  CHECK(sum == 3);
  CHECK(inner == std::tuple{0, std::vector{2, 0}, 0});
  CHECK(stacked.extents() == fanout::Extents<2>{3, 1});
  CHECK(columns.extents() == fanout::Extents<2>{2, 6});
  CHECK(part.sum == 3);
  CHECK(part.first == 5);
  CHECK(part.greatest == 2);
  CHECK(last == 3);
}

TEST_CASE("a rule gives the same type with any number of devices, also if nothing is split") {
  const auto forward = [](int x) {
    return std::tuple{fanout::psum(x), fanout::pmin(x), fanout::first(x), fanout::stack(std::vector{x, x}),
                      fanout::reduce(x, [](int a, int b) { return a * b; })};
  };
  for (const int devices : {1, 3}) {
    ParallelModel model{forward, host_devices(devices)};
    const auto [sum, least, first, stacked, product] = model(4);
    CHECK(sum == 4);
    CHECK(least == 4);
    CHECK(first == 4);
    CHECK(stacked.extents() == fanout::Extents<2>{1, 2});
    CHECK(product == 4);
  }
}
