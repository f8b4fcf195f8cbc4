// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/scatter/split_on.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::concat;
using fanout::dict;
using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::split;
using fanout::StridedView;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;
using namespace fanout::literals;

namespace {

Tensor<int, 3> counted(std::size_t a, std::size_t b, std::size_t c) {
  Tensor<int, 3> tensor(a, b, c);
  int next = 0;
  for (int& x : tensor) x = next++;
  return tensor;
}

std::vector<int> listed(const View<const int, 3>& x) { return {x.begin(), x.end()}; }
std::vector<int> listed(const Tensor<int, 3>& x) { return {x.begin(), x.end()}; }

}  // namespace

TEST_CASE("split<Axis> hands each shard a packed part, and concat<Axis> puts the parts together again") {
  const auto x = counted(3, 7, 4);
  for (int devices = 1; devices <= 4; ++devices) {
    CAPTURE(devices);
    const ParallelModel middle{[](View<const int, 3> part) { return concat<1>(part); }, host_devices(devices)};
    CHECK(listed(middle(split<1>(x))) == listed(x));
    CHECK(listed(middle(split<-2>(x))) == listed(x));
    const ParallelModel last{[](View<const int, 3> part) { return concat<-1>(part); }, host_devices(devices)};
    CHECK(listed(last(split<-1>(x))) == listed(x));
    CHECK(listed(last(split<2>(x))) == listed(x));
    const ParallelModel by_rows{[](View<const int, 3> part) { return part; }, host_devices(devices)};
    CHECK(listed(by_rows(split<0>(x))) == listed(x));
    CHECK(listed(by_rows(split<-3>(x))) == listed(x));
  }
}

TEST_CASE("a part that is one run of memory is not copied") {
  const auto x = counted(1, 6, 2);
  const ParallelModel model{[](View<const int, 3> part) { return reinterpret_cast<std::uintptr_t>(part.data()); },
                            host_devices(3)};
  const auto parts = model(split<1>(x));
  for (std::size_t i = 0; i < 3; ++i) CHECK(parts[i] == reinterpret_cast<std::uintptr_t>(x.data() + 4 * i));
  const auto wide = counted(2, 6, 2);
  const ParallelModel alone{[](View<const int, 3> part) { return reinterpret_cast<std::uintptr_t>(part.data()); },
                            host_devices(1)};
  CHECK(alone(split<1>(wide))[0] == reinterpret_cast<std::uintptr_t>(wide.data()));
}

TEST_CASE("a forward that takes a strided view gets the elements in place") {
  const auto x = counted(2, 6, 3);
  const ParallelModel model{[&x](StridedView<const int, 3> part, View<const int, 3> packed) {
                              CHECK(part.extents() == fanout::Extents<3>{2, 3, 3});
                              CHECK(packed.extents() == part.extents());
                              CHECK(&part(1, 0, 0) - x.data() == packed(1, 0, 0));
                              CHECK(packed.data() != part.data());
                              return concat<1>(part);
                            },
                            host_devices(2)};
  CHECK(listed(model(split<1>(x), split<1>(x))) == listed(x));
  const ParallelModel swapped{
      [](View<const int, 3> packed, StridedView<const int, 3> part) { return packed(0, 0, 0) == part(0, 0, 0); },
      host_devices(2)};
  const auto same = swapped(split<1>(x), split<1>(x));
  CHECK(same[0]);
  CHECK(same[1]);
}

TEST_CASE("a forward may take a strided view of an array split by rows too") {
  const auto x = counted(4, 2, 3);
  const ParallelModel model{[](StridedView<const int, 3> part, int) { return part; }, host_devices(2)};
  CHECK(listed(model(x, 3)) == listed(x));
  const ParallelModel on_last{[](StridedView<const int, 3> part) { return part; }, host_devices(2),
                              Options{.axis = -1}};
  CHECK(listed(on_last(x)) == listed(x));
}

namespace {

/// Takes 40 arguments, the last of them strided.
struct TakesMany {
  template <class... X>
  int forward(const X&... x) const
      requires(sizeof...(X) == 40 &&
               std::is_same_v<std::tuple_element_t<39, std::tuple<X...>>, StridedView<const int, 3>>) {
    const auto all = std::tie(x...);
    return std::get<0>(all) + std::get<38>(all) + std::get<39>(all)(0, 0, 0);
  }
};

}  // namespace

TEST_CASE("a call may have more than 32 arguments") {
  const auto x = counted(2, 6, 3);
  const ParallelModel model{TakesMany{}, host_devices(2)};
  const auto call = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return model(static_cast<int>(I)..., split<1>(x));
  };
  const auto sums = call(std::make_index_sequence<39>{});
  CHECK(sums[0] == 38 + x(0, 0, 0));
  CHECK(sums[1] == 38 + x(0, 3, 0));
}

TEST_CASE("a generic forward gets views") {
  const auto x = counted(2, 6, 3);
  const ParallelModel model{[](auto part) {
                              static_assert(std::is_same_v<decltype(part), View<const int, 3>>);
                              return concat<1>(part);
                            },
                            host_devices(2)};
  CHECK(listed(model(split<1>(x))) == listed(x));
}

TEST_CASE("split<Axis> of a tree applies to all its arrays that have no rule of their own") {
  const auto x = counted(2, 6, 3);
  const auto rows = counted(6, 2, 2);
  const Tensor<int, 3> table(9, 9, 9);
  const auto tree = dict("a"_k = std::tuple{View<const int, 3>(x), split<0>(rows)}, "b"_k = fanout::broadcast(table));
  const ParallelModel model{[](const auto& part) {
                              const auto& [a, b] = part["a"_k];
                              CHECK(a.extents() == fanout::Extents<3>{2, 3, 3});
                              CHECK(b.extents() == fanout::Extents<3>{3, 2, 2});
                              CHECK(part["b"_k].extent(0) == 9);
                              return std::tuple{concat<1>(a), b};
                            },
                            host_devices(2)};
  const auto [a, b] = model(split<1>(tree));
  CHECK(listed(a) == listed(x));
  CHECK(listed(b) == listed(rows));
  std::map<std::string, decltype(split<1>(x))> by_name;
  by_name.emplace("x", split<1>(x));
  const ParallelModel of_map{
      [](const std::map<std::string, View<const int, 3>>& parts) { return concat<1>(parts.at("x")); }, host_devices(2)};
  CHECK(listed(of_map(by_name)) == listed(x));
}

TEST_CASE("the extents on the axes of all arguments must agree") {
  const auto x = counted(2, 6, 3);
  const ParallelModel model{[](View<const int, 3>, View<const int, 3>) {}, host_devices(2)};
  CHECK_NOTHROW(model(split<1>(x), counted(6, 1, 1)));
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(split<1>(x), split<2>(x)); }), "input[0] and input[1]",
             "6 and 3"));
}

TEST_CASE("an array in a tree that has no such axis is named") {
  const std::tuple tree{counted(2, 3, 4), std::vector{1, 2, 3}};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)fanout::batch_rows(split<1>(tree)); }), "input[0][1]",
             "axis 1", "broadcast"));
  const std::tuple flat{Tensor<int, 1>(3)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)fanout::batch_rows(split<2>(flat)); }),
             "no such axis at input[0][0]", "from -1 to 0", "axis 2"));
}

TEST_CASE("shard arguments made by hand are packed in the given scratch") {
  const auto x = counted(2, 4, 2);
  const auto inputs = scatter(host_devices(2), split<1>(x));
  fanout::detail::Scratch scratch;
  const auto [part] = inputs.pieces(1, {}, &scratch);
  CHECK(listed(part) == std::vector{4, 5, 6, 7, 12, 13, 14, 15});
  CHECK(says(message_of<fanout::InvalidArgument>([&] { (void)inputs[1]; }), "input[0]", "Scratch"));
}

TEST_CASE("Options::axis splits and concatenates all arrays on that axis") {
  const auto x = counted(2, 6, 3);
  for (const int axis : {1, -2}) {
    const ParallelModel model{
        [](fanout::Context auto& ctx, View<const int, 3> part, std::size_t whole) {
          CHECK(part.extents() == fanout::Extents<3>{2, 2, 3});
          CHECK(ctx.rows().size() == 2);
          CHECK(whole == 4);
          return std::tuple{part,           concat<0>(std::vector{1, 2}), 1.5, std::string("one"), fanout::psum(1),
                            concat<2>(part)};
        },
        host_devices(3), Options{.axis = axis}};
    const auto [same, each, number, text, sum, wide] = model(x, 4);
    CHECK(same.extents() == x.extents());
    CHECK(listed(same) == listed(x));
    CHECK(each == std::vector{1, 2, 1, 2, 1, 2});
    CHECK(number.extent(0) == 3);
    CHECK(text.size() == 3);
    CHECK(sum == 3);
    CHECK(wide.extents() == fanout::Extents<3>{2, 2, 9});
  }
}

TEST_CASE("Options::axis names the inputs and results without that axis") {
  const ParallelModel model{[](const auto& part) { return part.size(); }, host_devices(2), Options{.axis = 1}};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(std::vector{1, 2}); }), "input[0]", "split<0>(x)"));
  CHECK(model(split<0>(std::vector{1, 2, 3})).extent(0) == 2);
  const ParallelModel flat{[](View<const int, 3>) { return Tensor<int, 1>(2); }, host_devices(2), Options{.axis = 1}};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { flat(counted(2, 2, 2)); }), "output", "axis 1", "concat<0>(x)"));
}
