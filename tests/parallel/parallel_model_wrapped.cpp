// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ParallelModel as the model of another: each shard of the outer one is split once more.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::DeviceSet;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::Options;
using fanout::ParallelModel;
using fanout::ReplicaError;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// Results of all sorts, row by row: a window of the call's buffer, an array of its own, nested ones.
struct ScaledRows {
  int factor = 2;

  auto forward(Context auto& ctx, View<const int, 2> x, const std::string& text) const {
    auto output = fanout::output<int>(ctx, x.extent(1));
    std::vector<int> sums;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      int sum = 0;
      for (std::size_t k = 0; k < x.extent(1); ++k) sum += output(i, k) = factor * x(i, k);
      sums.push_back(sum);
      names.push_back(text + std::to_string(sum));
    }
    return std::tuple{output, fanout::dict("sums"_k = sums, "nested"_k = fanout::dict("names"_k = names))};
  }
};

Tensor<int, 2> numbers(std::size_t rows) {
  Tensor<int, 2> tensor(rows, 3);
  for (int next = 0; int& x : tensor) x = next++;
  return tensor;
}

template <class Result>
bool same(const Result& a, const Result& b) {
  const auto& [output_a, extras_a] = a;
  const auto& [output_b, extras_b] = b;
  return output_a.extents() == output_b.extents() &&
         std::vector<int>(output_a.begin(), output_a.end()) == std::vector<int>(output_b.begin(), output_b.end()) &&
         extras_a["sums"_k] == extras_b["sums"_k] && extras_a["nested"_k]["names"_k] == extras_b["nested"_k]["names"_k];
}

auto inner_model() { return ParallelModel{ScaledRows{}, host_devices(3)}; }
using Inner = decltype(inner_model());
using Hosts = DeviceSet<HostDevice>;

struct Failing {
  void forward(View<const int, 2> x) const {
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      if (x(i, 0) == 15) throw std::out_of_range("the row that begins with 15");
    }
  }
};

}  // namespace

TEST_CASE("a model given devices or options wraps a parallel model, and given nothing it is that model, moved") {
  ParallelModel moved{inner_model()};
  static_assert(std::is_same_v<decltype(moved), Inner>);
  Inner named = inner_model();
  const auto* const original = &named.model();
  ParallelModel moved_too{std::move(named)};
  static_assert(std::is_same_v<decltype(moved_too), Inner>);
  CHECK(&moved_too.model() == original);

  ParallelModel on_devices{inner_model(), host_devices(2)};
  static_assert(std::is_same_v<decltype(on_devices), ParallelModel<Inner, Hosts>>);
  ParallelModel with_options{inner_model(), Options{}};
  static_assert(std::is_same_v<decltype(with_options), ParallelModel<Inner>>);
  ParallelModel<Inner> spelt_out{inner_model()};
  static_assert(std::is_same_v<decltype(spelt_out)::model_type, Inner>);
  CHECK(spelt_out.model().devices().size() == 3);
}

TEST_CASE("a wrapped model gives what it gives alone, however nested its results are") {
  const auto alone = inner_model();
  const ParallelModel outer{inner_model(), host_devices(2)};
  const ParallelModel twice{ParallelModel{inner_model(), host_devices(2)}, host_devices(3)};
  for (const std::size_t rows : {0U, 1U, 2U, 5U, 30U}) {
    CAPTURE(rows);
    const auto x = numbers(rows);
    const std::string text = "sum ";
    const auto expected = alone(x, text);
    const auto result = outer(x, text);
    static_assert(std::is_same_v<decltype(result), decltype(expected)>);
    CHECK(same(result, expected));
    CHECK(same(twice(x, text), expected));
  }
}

TEST_CASE("a number becomes one per shard of the wrapped model") {
  const ParallelModel outer{
      ParallelModel{[](View<const int, 1> x) { return static_cast<int>(x.extent(0)); }, host_devices(2)},
      host_devices(2)};
  const auto sizes = outer(Tensor<int, 1>(10));
  CHECK(std::vector<int>(sizes.begin(), sizes.end()) == std::vector{3, 2, 3, 2});
}

TEST_CASE("a mean inside a wrapped model is one per shard of the outer one") {
  const ParallelModel outer{ParallelModel{[](View<const double, 1> x) { return fanout::pmean(x[0]); }, host_devices(2)},
                            host_devices(2)};
  Tensor<double, 1> x(4);
  for (double next = 0; double& value : x) value = next++;
  const auto means = outer(x);
  CHECK(std::vector<double>(means.begin(), means.end()) == std::vector{0.5, 2.5});
}

TEST_CASE("an update of the outer model reaches the inner one's original") {
  ParallelModel outer{inner_model(), host_devices(2)};
  outer.update([](Inner& inner) { inner.update([](ScaledRows& rows) { rows.factor = 5; }); });
  ParallelModel alone{ScaledRows{.factor = 5}, host_devices(3)};
  const auto x = numbers(7);
  CHECK(same(outer(x, std::string()), alone(x, std::string())));
}

TEST_CASE("an exception in a wrapped model is a ReplicaError in a ReplicaError, each with its own rows") {
  const ParallelModel outer{ParallelModel{Failing{}, host_devices(2)}, host_devices(2)};
  CHECK_NOTHROW(outer(numbers(4)));
  try {
    outer(numbers(8));  // row 5, in the outer shard [4, 8) and there in [0, 2)
    FAIL("nothing was thrown");
  } catch (const ReplicaError& error) {
    REQUIRE(error.failures().size() == 1);
    CHECK(error.failures()[0].rows == fanout::RowRange{4, 8});
    const auto* inner = error.get_if<ReplicaError>();
    REQUIRE(inner != nullptr);
    REQUIRE(inner->failures().size() == 1);
    CHECK(inner->failures()[0].rows == fanout::RowRange{0, 2});
    CHECK(inner->get_if<std::out_of_range>() != nullptr);
    CHECK(says(error.what(), "replica 1 on device host:1, rows [4, 8)", "replica 0 on device host:0, rows [0, 2)",
               "the row that begins with 15"));
  }
  CHECK_NOTHROW(outer(numbers(4)));
}

TEST_CASE("errors of a wrapped model's arguments come from inside the outer forward") {
  const ParallelModel outer{
      ParallelModel{[](View<const int, 1> x, View<const int, 1> y) { return x[0] + y[0]; }, host_devices(2)},
      host_devices(2)};
  CHECK_THROWS_AS(outer(Tensor<int, 1>(4), fanout::broadcast(Tensor<int, 1>(4))), ReplicaError);
  CHECK(says(message_of<ReplicaError>([&] { outer(Tensor<int, 1>(4), fanout::broadcast(Tensor<int, 1>(4))); }),
             "different numbers of rows", "2 and 4"));
}

TEST_CASE("wrapped models on the same devices called from many threads all end") {
  const ParallelModel outer{ParallelModel{inner_model(), host_devices(2)}, host_devices(2)};
  const auto x = numbers(12);
  const auto expected = inner_model()(x, std::string("t"));
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (int& count : right) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) count += same(outer(x, std::string("t")), expected) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector{50, 50, 50, 50});
}
