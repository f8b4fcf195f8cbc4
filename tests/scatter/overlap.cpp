// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/overlap.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::broadcast;
using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::inout;
using fanout::InvalidArgument;
using fanout::ParallelModel;
using fanout::Range;
using fanout::RowRange;
using fanout::StridedView;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;
using namespace fanout::literals;

namespace {

/// 0, 1, 2, ...
template <class T = int>
Tensor<T, 1> counted(std::size_t size) {
  Tensor<T, 1> x(size);
  for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<T>(i);
  return x;
}

std::vector<int> all_of(const Tensor<int, 1>& x) { return {x.begin(), x.end()}; }

/// One step of a diffusion: each row reads its neighbours, in an array that everyone has the whole of.
struct Neighbours {
  int* calls;
  auto forward(Context auto& ctx, const Tensor<int, 1>& all, RowRange rows) const {
    ++*calls;
    auto next = fanout::output<int>(ctx);
    for (const auto [local, global] : rows.enumerate()) {
      next[local] = (global == 0 ? 0 : all[global - 1]) + (global + 1 == all.size() ? 0 : all[global + 1]);
    }
    return next;
  }
};

/// What a call says of an argument that overlaps with its destination.
template <class D, class... Args>
std::string refused(int devices, D&& to, Args&&... args) {
  const ParallelModel model{[](Context auto& ctx, const auto&...) {
                              CHECK_MESSAGE(false, "a shard ran");
                              return fanout::output<int>(ctx);
                            },
                            host_devices(devices)};
  return message_of<InvalidArgument>([&] { model.into(to)(args...); });
}

}  // namespace

TEST_CASE("a result is refused if it overlaps rows that other shards read") {
  int calls = 0;
  const ParallelModel step{Neighbours{&calls}, host_devices(1)};
  Tensor<int, 1> u = counted(6);
  const Tensor<int, 1> expected = step(broadcast(u), Range{6});
  Tensor<int, 1> next(6);
  step.into(next)(broadcast(u), Range{6});
  CHECK(all_of(next) == all_of(expected));
  calls = 0;
  for (const int devices : {1, 2, 3}) {
    const ParallelModel model{Neighbours{&calls}, host_devices(devices)};
    CHECK(says(message_of<InvalidArgument>([&] { model.into(u)(broadcast(u), Range{6}); }),
               "input[0] and output:", "inout(x)", "write into another array"));
  }
  CHECK(calls == 0);
  CHECK(all_of(u) == all_of(counted(6)));
  step.into(next)(broadcast(u), Range{6});  // works afterwards
  CHECK(calls == 1);
}

TEST_CASE("an input that overlaps a destination is refused, and both are named") {
  Tensor<int, 2> matrix(4, 4);
  const View<int, 2> upper = matrix.view().rows({0, 3});
  const View<int, 1> fifth(matrix.data() + 4, 4);
  CHECK(says(refused(2, fifth, fanout::split<1>(matrix)), "input[0] and output:"));
  CHECK(says(refused(2, fifth, matrix), "input[0] and output:"));  // rows, but others
  CHECK(says(refused(1, View<int, 1>(matrix.data(), 12), matrix.view().rows({2, 4})), "input[0] and output:"));
  CHECK(says(refused(2, fifth, std::vector<float>(4), dict("a"_k = std::tuple{1, View<const int, 2>(upper)})),
             "input[1].a[1] and output:"));
  CHECK(
      says(refused(2, fifth, fanout::each(std::vector{matrix.view().rows({3, 4}), upper})), "input[0][1] and output"));
  CHECK(says(refused(2, fifth, std::map<std::string, View<int, 2>>{{"x", upper}}), "input[0][\"x\"] and output"));
  CHECK(says(refused(2, fifth, std::optional(upper)), "input[0] and output"));
  CHECK(says(refused(2, fifth, inout(matrix)), "input[0] and output:"));  // other rows than those of the destination
  const StridedView<const int, 2> columns = StridedView<const int, 2>(View<const int, 2>(matrix)).slice(1, {2, 4});
  CHECK(says(refused(2, View<int, 1>(matrix.data() + 15, 1), columns), "input[0] and output:"));

  std::vector<int> numbers(8);
  const View<int, 1> last(numbers.data() + 4, 4);
  CHECK(says(refused(2, last, numbers), "input[0] and output:"));
  CHECK(says(refused(2, last, std::span(numbers).subspan(5)), "input[0] and output:"));
  CHECK(says(refused(2, last, fanout::rows(numbers)), "input[0] and output:"));
  CHECK(says(refused(2, last, broadcast(std::pair{1, std::span(numbers)})), "input[0][1] and output:"));

  const ParallelModel leaves{[](View<const int, 1> rows) { return fanout::sharded(Tensor<int, 1>(rows)); },
                             host_devices(2)};
  const auto parts = leaves(counted(4));
  const View<int, 1> second(const_cast<int*>(parts[1].data()), 2);
  CHECK(says(refused(2, second, parts), "input[0][1] and output:"));

  Tensor<int, 1> other(4);
  const std::span<const int> shown = numbers;
  const ParallelModel two{[](Context auto& ctx, std::span<const int>) {
                            return dict("a"_k = fanout::output<int>(ctx),
                                        "b"_k = std::vector{fanout::output<int>(ctx)});
                          },
                          host_devices(2)};
  auto into = dict("a"_k = other.view(), "b"_k = std::vector{last});
  CHECK(says(message_of<InvalidArgument>([&] { two.into(into)(shown); }), "input[0] and output.b[0]:"));
}

TEST_CASE("an input next to a destination is no overlap") {
  std::vector<int> numbers{1, 2, 3, 4, 5, 6, 7};
  const ParallelModel model{[](Context auto& ctx, View<const int, 1> x, const auto&...) {
                              auto y = fanout::output<int>(ctx);
                              for (std::size_t i = 0; i < x.size(); ++i) y[i] = -x[i];
                              return y;
                            },
                            host_devices(2)};
  model.into(View<int, 1>(numbers.data() + 2, 2))(View<const int, 1>(numbers.data(), 2),
                                                  broadcast(View<const int, 1>(numbers.data() + 4, 3)),
                                                  broadcast(View<const int, 1>(numbers.data() + 3, 0)));
  CHECK(numbers == std::vector{1, 2, -1, -2, 5, 6, 7});
  Tensor<int, 2> matrix(2, 3);
  const StridedView<const int, 2> left = StridedView<const int, 2>(View<const int, 2>(matrix)).slice(1, {0, 2});
  model.into(View<int, 1>(matrix.data() + 5, 1))(Tensor<int, 1>(1), broadcast(left));  // ends before the last element
  CHECK(matrix(1, 2) == 0);
}

TEST_CASE("a result may be written to the same rows of an inout argument") {
  const ParallelModel twice{[](Context auto& ctx, View<const int, 1> x) {
                              auto y = fanout::output<int>(ctx);
                              for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
                              return y;
                            },
                            host_devices(3)};
  Tensor<int, 1> x = counted(5);
  twice.into(x)(inout(x));
  twice.into(x.view())(inout(x));
  CHECK(all_of(x) == std::vector{0, 4, 8, 12, 16});
  std::vector<int> numbers{1, 2, 3};
  const ParallelModel spans{[](Context auto& ctx, std::span<const int> rows) {
                              auto y = fanout::output<int>(ctx);
                              for (std::size_t i = 0; i < rows.size(); ++i) y[i] = 3 * rows[i];
                              return y;
                            },
                            host_devices(2)};
  spans.into(View<int, 1>(numbers))(inout(numbers));
  CHECK(numbers == std::vector{3, 6, 9});
  // Not by rows alone.
  CHECK(says(message_of<InvalidArgument>([&] { twice.into(x)(x); }), "input[0] and output:", "pass inout(x)"));
  Tensor<int, 1> more = counted(6);
  CHECK(says(message_of<InvalidArgument>([&] {
               twice.into(more.view().rows({1, 6}))(inout(more.view().rows({0, 5})));
             }),
             "input[0] and output:"));
}

TEST_CASE("a result that is copied after all shards end may overlap an input") {
  const ParallelModel vectors{[](std::span<const int> rows) {
                                std::vector<int> result(rows.begin(), rows.end());
                                for (int& value : result) value += 1;
                                return result;
                              },
                              host_devices(2)};
  std::vector<int> numbers{1, 2, 3};
  vectors.into(numbers)(numbers);
  vectors.into(std::span(numbers))(numbers);
  CHECK(numbers == std::vector{3, 4, 5});
}

TEST_CASE("overlapping arrays in a destination are refused") {
  const ParallelModel three{[](Context auto& ctx, std::span<const int> rows) {
                              return std::tuple{fanout::output<int>(ctx), dict("b"_k = fanout::output<int>(ctx)),
                                                std::vector<int>(rows.begin(), rows.end())};
                            },
                            host_devices(2)};
  const std::vector<int> x(4);
  Tensor<int, 1> a(4);
  Tensor<int, 1> b(4);
  std::vector<int> c(8);
  CHECK_NOTHROW(three.into(std::tuple{a.view(), dict("b"_k = b.view()), std::span(c).first(4)})(x));
  const auto refused_for = [&](auto one, auto two, auto last) {
    return message_of<InvalidArgument>([&] { three.into(std::tuple{one, dict("b"_k = two), last})(x); });
  };
  CHECK(says(refused_for(a.view(), a.view(), std::span(c).first(4)), "two arrays of a destination",
             "output[0] and output[1].b:", "do not overlap"));
  CHECK(
      says(refused_for(a.view(), View<int, 1>(c.data() + 1, 4), std::span(c).first(4)), "output[1].b and output[2]:"));
  CHECK(says(refused_for(View<int, 1>(c.data() + 3, 4), b.view(), std::span(c).first(4)), "output[0] and output[2]:"));
  CHECK_NOTHROW((void)three(x));
}

TEST_CASE("an argument that overlaps an inout argument is refused") {
  const ParallelModel model{[](View<int, 1> state, const auto& all) {
                              for (int& value : state) value += all[0];
                            },
                            host_devices(2)};
  Tensor<int, 1> state = counted(6);
  CHECK(says(message_of<InvalidArgument>([&] { model(inout(state), broadcast(state)); }),
             "input[0] and input[1]:", "inout(x)", "pass a copy"));
  CHECK(says(message_of<InvalidArgument>([&] { model.async(inout(state), broadcast(state)).get(); }),
             "input[0] and input[1]:"));
  CHECK(
      says(message_of<InvalidArgument>([&] { (void)fanout::scatter(host_devices(2), inout(state), broadcast(state)); }),
           "input[0] and input[1]:"));
  CHECK(all_of(state) == all_of(counted(6)));
  const auto halves = [&](std::size_t begin) { return state.view().rows({begin, begin + 4}); };
  CHECK(
      says(message_of<InvalidArgument>([&] { model(inout(halves(0)), inout(halves(2))); }), "input[0] and input[1]:"));
  CHECK(says(message_of<InvalidArgument>([&] { model(inout(halves(0)), halves(1)); }), "input[0] and input[1]:"));
  const ParallelModel pairs{[](const std::pair<View<int, 1>, View<const int, 1>>&) {}, host_devices(2)};
  CHECK(says(message_of<InvalidArgument>([&] {
               pairs(std::pair{inout(halves(0)), halves(2)});
             }),
             "input[0][0] and input[0][1]:"));

  // Trees and lists are handed over whole, even if they have as many elements as there are rows.
  const ParallelModel lists{[](View<int, 1>, std::span<const Tensor<int, 1>>) {}, host_devices(2)};
  std::vector<Tensor<int, 1>> trees(4, counted(4));
  CHECK(says(message_of<InvalidArgument>([&] { lists(inout(trees[1]), fanout::rows(trees)); }),
             "input[0] and input[1][1]:"));
  const ParallelModel numbers{[](std::span<int>, const std::vector<int>&) {}, host_devices(2)};
  std::vector<int> four{1, 2, 3, 4};
  CHECK(says(message_of<InvalidArgument>([&] { numbers(inout(four), fanout::each(four)); }), "input[0] and input[1]:"));

  const ParallelModel parts{[](std::span<int>, std::span<const int>) {}, host_devices(2)};
  parts(inout(four), fanout::rows(four));
  model(inout(state), state);  // each shard reads the rows that it writes
  model(inout(state), inout(state));
  model(inout(state.view().rows({0, 3})), state.view().rows({3, 6}));
  CHECK(state[0] == state[3]);
}
