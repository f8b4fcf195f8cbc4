// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/array/view.hpp>

#include "support/message_of.hpp"

using fanout::Extents;
using fanout::View;

namespace {

static_assert(std::is_trivially_copyable_v<View<float, 2>>, "kernels take views");
static_assert(View<const float, 3>::rank == 3);
static_assert(std::is_same_v<View<const float, 3>::value_type, float>);
static_assert(std::is_same_v<View<const float, 3>::element_type, const float>);

static_assert(std::is_convertible_v<View<float, 2>, View<const float, 2>>);
static_assert(!std::is_constructible_v<View<float, 2>, View<const float, 2>>, "a view that reads does not write");
static_assert(!std::is_constructible_v<View<const double, 2>, View<float, 2>>);
static_assert(!std::is_constructible_v<View<const float, 1>, View<float, 2>>);
static_assert(!std::is_constructible_v<View<float, 2>, View<float, 1>>);

static_assert(std::is_constructible_v<View<float, 2>, float*, int, std::size_t>);
static_assert(!std::is_constructible_v<View<float, 2>, float*, int>, "one extent for each axis");
static_assert(!std::is_constructible_v<View<float, 2>, float*, int, int, int>);
static_assert(!std::is_constructible_v<View<float, 1>, float*, double>, "an extent is an integer");
static_assert(!std::is_constructible_v<View<float, 1>, float*>);
static_assert(!std::is_constructible_v<View<float, 1>, const float*, int>);
static_assert(!std::is_constructible_v<View<float, 1>, std::nullptr_t>);
static_assert(!std::is_constructible_v<View<float, 1>, std::nullptr_t, int>);
static_assert(!std::is_constructible_v<View<float, 2>, std::nullptr_t, int, int>);
static_assert(!std::is_convertible_v<std::nullptr_t, View<const float, 1>>);

static_assert(std::is_convertible_v<std::vector<float>&, View<float, 1>>);
static_assert(std::is_convertible_v<std::vector<float>&, View<const float, 1>>);
static_assert(std::is_convertible_v<const std::vector<float>&, View<const float, 1>>);
static_assert(std::is_convertible_v<std::array<float, 3>&, View<float, 1>>);
static_assert(std::is_convertible_v<float (&)[3], View<float, 1>>);
static_assert(std::is_convertible_v<std::span<float>, View<const float, 1>>, "a span borrows already");
static_assert(!std::is_constructible_v<View<float, 1>, const std::vector<float>&>);
static_assert(!std::is_constructible_v<View<float, 1>, std::span<const float>>);
static_assert(std::is_constructible_v<View<const float, 1>, std::vector<float>>, "refused: tests/must_not_compile");
static_assert(!std::is_constructible_v<View<const float, 1>, std::vector<double>>);
static_assert(!std::is_constructible_v<View<const float, 1>, std::vector<double>&>);
static_assert(!std::is_constructible_v<View<bool, 1>, std::vector<bool>&>);
static_assert(!std::is_constructible_v<View<float, 2>, std::vector<float>&>, "a vector has one axis");

static_assert(fanout::ArrayLeaf<View<float, 2>> && fanout::ArrayLeaf<View<const float, 1>>);
static_assert(std::is_same_v<fanout::leaf_traits<View<float, 2>>::piece_type, View<const float, 2>>);

constexpr float six_numbers[6] = {0, 1, 2, 3, 4, 5};
constexpr View<const float, 2> table(six_numbers, Extents<2>{{3, 2}});
static_assert(table.size() == 6 && table.extent(0) == 3 && table.extent(1) == 2 && !table.empty());
static_assert(table(2, 1) == 5);
static_assert(table.row(1)[0] == 2);
static_assert(table.rows({1, 3}).extents() == Extents<2>{{2, 2}});
static_assert(table.rows({1, 3})(0, 1) == 3);
static_assert(table.end() - table.begin() == 6);

}  // namespace

TEST_CASE("a view that was not given anything shows nothing") {
  const View<float, 2> none;
  CHECK(none.empty());
  CHECK(none.size() == 0);
  CHECK(none.data() == nullptr);
  CHECK(none.space() == fanout::host_memory);
  CHECK(none.values().empty());
  CHECK(none.begin() == none.end());
}

TEST_CASE("a view is row-major") {
  std::vector<int> numbers_of_four(2 * 3 * 4 * 5);
  std::iota(numbers_of_four.begin(), numbers_of_four.end(), 0);
  const View<int, 4> view(numbers_of_four.data(), 2, 3, 4, 5);
  CHECK(view(0, 0, 0, 1) == 1);
  CHECK(view(0, 0, 1, 0) == 5);
  CHECK(view(0, 1, 0, 0) == 20);
  CHECK(view(1U, 0L, short{0}, 0) == 60);
  CHECK(view(1, 2, 3, 4) == 119);
  CHECK(view.row(1).row(2).row(3)[4] == 119);
  CHECK(view.row(1).extents() == Extents<3>{{3, 4, 5}});
  CHECK(std::accumulate(view.begin(), view.end(), 0) == 119 * 60);
}

TEST_CASE("a view writes what it shows") {
  std::vector<float> values(6);
  const View<float, 2> view(values.data(), 3, 2);
  view(2, 0) = 7;
  CHECK(values[4] == 7);
  view.row(1)[1] = 8;
  CHECK(values[3] == 8);
  view.rows({0, 1}).values()[1] = 9;
  CHECK(values[1] == 9);
  const View<const float, 2> reader = view;
  CHECK(reader.data() == values.data());
  CHECK(reader(2, 0) == 7);
}

TEST_CASE("a view shows the elements of vectors, arrays and spans") {
  std::vector<float> vector{1, 2, 3};
  const View<float, 1> of_vector = vector;
  CHECK(of_vector.data() == vector.data());
  CHECK(of_vector.extents() == Extents<1>{{3}});

  const std::array<float, 2> array{4, 5};
  const View<const float, 1> of_array = array;
  CHECK(of_array[1] == 5);

  float plain[4] = {6, 7, 8, 9};
  const View<float, 1> of_plain = plain;
  CHECK(of_plain.size() == 4);
  CHECK(of_plain[3] == 9);

  const View<const float, 1> of_span = std::span(vector).subspan(1);
  CHECK(of_span.extents() == Extents<1>{{2}});
  CHECK(of_span[0] == 2);

  std::vector<float> nothing;
  CHECK(View<float, 1>(nothing).empty());
}

TEST_CASE("some rows of a view are a view of the same columns") {
  const View<const float, 2> view(six_numbers, 3, 2);
  const auto middle = view.rows({1, 2});
  CHECK(middle.data() == six_numbers + 2);
  CHECK(middle.extents() == Extents<2>{{1, 2}});
  CHECK(view.rows({0, 3}).extents() == view.extents());
  for (std::size_t i = 0; i <= 3; ++i) CHECK(view.rows({i, i}).extents() == Extents<2>{{0, 2}});
  const View<float, 2> none;
  CHECK(none.rows({0, 0}).extents() == Extents<2>{});
}

TEST_CASE("a view keeps its memory through rows and conversions") {
  constexpr fanout::MemorySpace elsewhere{{"cuda", 1}};
  float value = 0;
  const View<float, 2> view(&value, {{1, 1}}, elsewhere);
  CHECK(view.space() == elsewhere);
  CHECK(view.row(0).space() == elsewhere);
  CHECK(view.rows({0, 1}).space() == elsewhere);
  CHECK(View<const float, 2>(view).space() == elsewhere);
}

TEST_CASE("a view refuses extents that cannot be") {
  float value = 0;
  const auto refused = [&](auto... extents) {
    return fanout_test::message_of<fanout::ShapeMismatch>([&] { View<float, sizeof...(extents)>(&value, extents...); });
  };
  CHECK(fanout_test::says(refused(-1), "invalid extents", "found -1"));
  CHECK(fanout_test::says(refused(1L << 40, 1L << 40), "invalid extents", "found [1099511627776, 1099511627776]"));
}

TEST_CASE("the rows of a view are its leaf's rows") {
  const View<const float, 2> view(six_numbers, 3, 2);
  using traits = fanout::leaf_traits<View<const float, 2>>;
  CHECK(traits::rows(view) == 3);
  CHECK(traits::piece(view, 1, 3).data() == six_numbers + 2);
  CHECK(traits::piece(view, 1, 3).extents() == Extents<2>{{2, 2}});
}

TEST_CASE("rows that a view does not have are refused") {
  const View<const float, 2> view(six_numbers, 3, 2);
  CHECK(view.rows({3, 3}).empty());
  const auto refused = [&](fanout::RowRange range) {
    return fanout_test::message_of<fanout::InvalidArgument>([&] { static_cast<void>(view.rows(range)); });
  };
  CHECK(fanout_test::says(refused({2, 4}), "rows outside of their array", "expected rows within [0, 3), found [2, 4)"));
  CHECK(fanout_test::says(refused({2, 1}), "found [2, 1)"));
}

#if FANOUT_CHECKS
TEST_CASE("an element outside of a view is refused where checks are on") {
  const View<const float, 2> view(six_numbers, 3, 2);
  const auto refused = [](const auto& touch) { return fanout_test::message_of<fanout::InvalidArgument>(touch); };
  CHECK(fanout_test::says(refused([&] { static_cast<void>(view(0, 2)); }), "an index outside of its array",
                          "expected indices below the extents [3, 2], found [0, 2]"));
  CHECK(fanout_test::says(refused([&] { static_cast<void>(view.row(3)); }), "found [3]"));
  CHECK(fanout_test::says(refused([&] { static_cast<void>(view[0][2]); }), "found [2]"));
  CHECK(fanout_test::says(refused([&] { static_cast<void>(view.extent(2)); }), "found [2]"));
}
#endif

TEST_CASE("a view deduces its type from a pointer with extents, a vector, an array or a span") {
  std::vector<int> numbers{1, 2, 3, 4};
  const std::vector<int>& reads = numbers;
  std::array<float, 2> pair{1, 2};
  const View of_pointer{numbers.data(), 2, 2};
  const View of_vector = numbers;
  const View of_const = reads;
  const View of_array = pair;
  const View of_span = std::span(reads);
  static_assert(std::is_same_v<decltype(of_pointer), const View<int, 2>>);
  static_assert(std::is_same_v<decltype(of_vector), const View<int, 1>>);
  static_assert(std::is_same_v<decltype(of_const), const View<const int, 1>>);
  static_assert(std::is_same_v<decltype(of_array), const View<float, 1>>);
  CHECK(of_const.size() == 4);
  CHECK(of_array.size() == 2);
  static_assert(std::is_same_v<decltype(of_span), const View<const int, 1>>);
  CHECK(of_pointer[1][0] == 3);
  CHECK(of_vector == of_span);
}
