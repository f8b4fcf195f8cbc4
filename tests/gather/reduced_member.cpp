// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/gathers.hpp"

using fanout::gathered_t;
using fanout::host_devices;
using fanout::Mean;
using fanout::ParallelModel;
using fanout::Sum;
using fanout::Tensor;
using fanout::View;
using fanout_test::Gathers;

namespace {

static_assert(std::is_same_v<gathered_t<Mean<float>>, Mean<float>>);
static_assert(std::is_same_v<gathered_t<Sum<Tensor<int, 2>>>, Sum<Tensor<int, 2>>>);
static_assert(std::is_same_v<gathered_t<std::vector<Sum<int>>>, std::vector<Sum<int>>>, "a vector of trees");
static_assert(!Gathers<Mean<int>>, "a mean of whole numbers is none");
static_assert(!Gathers<Sum<std::string>>);
static_assert(!Gathers<Sum<View<const int, 1>>>, "it would show what is gone");

static_assert(std::is_trivially_copyable_v<Mean<double>> && sizeof(Mean<double>) == sizeof(double));

}  // namespace

TEST_CASE("a mean or a sum is made from a value and used as one") {
  constexpr Mean<float> mean = 0.5F;
  static_assert(mean == 0.5F && mean.value == 0.5F);
  const float number = mean;
  CHECK(number == 0.5F);
  CHECK(mean < 1);
  Sum<std::vector<int>> sum;
  CHECK(sum.value.empty());
  sum = std::vector{1, 2};
  const std::vector<int>& values = sum;
  CHECK(values == std::vector{1, 2});
  CHECK(Sum<int>() == 0);
}

TEST_CASE("the struct of the documentation") {
  // [struct]
  struct Evaluation {
    fanout::Tensor<float, 2> scores;         // by rows
    fanout::Mean<float> loss;                // the mean over all rows
    fanout::Sum<int> correct;                // added up
    fanout::PerShard<fanout::DeviceId> who;  // one of each shard
  };
  // [/struct]
  ParallelModel model{[](fanout::Context auto& ctx, View<const float, 2> x) {
                        auto scores = fanout::output<float>(ctx, x.extent(1));
                        for (std::size_t i = 0; i < x.size(); ++i) scores.data()[i] = 2 * x.data()[i];
                        return Evaluation{scores, 0.5F, 1, ctx.device().id()};
                      },
                      host_devices(2)};
  const Evaluation evaluation = model(Tensor<float, 2>(5, 3));
  CHECK(evaluation.scores.extents() == fanout::Extents<2>{5, 3});
  CHECK(evaluation.loss == doctest::Approx(0.5F));
  CHECK(evaluation.correct == 2);
  CHECK(evaluation.who.size() == 2);
}

TEST_CASE("means are weighted by rows and sums added, of numbers, arrays and structs") {
  struct Pair {
    double a;
    std::vector<double> b;
  };
  ParallelModel model{[](View<const double, 1> x) {
                        const Pair pair{x[0], {x[0], 1}};
                        return std::tuple{Mean<double>(x[0]), Sum<std::vector<double>>(pair.b), Mean<Pair>(pair)};
                      },
                      host_devices(2)};
  Tensor<double, 1> x(13);
  x[0] = 2;
  x[7] = 15;
  const auto [mean, sum, pairs] = model(x);
  CHECK(mean == doctest::Approx((7 * 2 + 6 * 15) / 13.0));
  CHECK(sum.value == std::vector<double>{17, 2});
  CHECK(pairs.value.a == doctest::Approx(8));
  CHECK(pairs.value.b[1] == doctest::Approx(1));
}

TEST_CASE("a struct's members keep the greatest and the least") {
  struct Bounds {
    fanout::Min<double> least;
    fanout::Max<std::vector<double>> greatest;
  };
  ParallelModel model{[](View<const double, 1> x) { return Bounds{x[0], std::vector{x[1]}}; }, host_devices(2)};
  Tensor<double, 1> x(4);
  x[0] = 2;
  x[1] = 3;
  x[2] = 4;
  x[3] = -1;
  const Bounds range = model(x);
  CHECK(range.least == 2);
  CHECK(range.greatest.value == std::vector{3.0});
}

TEST_CASE("a mean inside psum is a mean") {
  struct Losses {
    Mean<double> mean;
    double sum;
  };
  ParallelModel model{[](View<const double, 1>) { return fanout::psum(Losses{1.0, 1.0}); }, host_devices(3)};
  const auto losses = model(Tensor<double, 1>(6));
  CHECK(losses.mean == doctest::Approx(1));
  CHECK(losses.sum == 3);
}
