// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/array/strided_view.hpp>

#include <doctest/doctest.h>

#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>

using fanout::Extents;
using fanout::StridedView;
using fanout::Tensor;
using fanout::View;

namespace {

Tensor<int, 3> counted(std::size_t a, std::size_t b, std::size_t c) {
  Tensor<int, 3> tensor(a, b, c);
  int next = 0;
  for (int& x : tensor) x = next++;
  return tensor;
}

template <class T, std::size_t R>
std::vector<int> in_order(const StridedView<T, R>& view) {
  std::vector<int> packed(view.size(), -1);
  pack(fanout::backend::host_memory_operations, packed.data(), view);
  return packed;
}

}  // namespace

TEST_CASE("a strided view of a contiguous array shows the same elements") {
  const auto tensor = counted(2, 3, 4);
  const StridedView<const int, 3> view(tensor.view());
  CHECK(view.extents() == tensor.extents());
  CHECK(view.strides() == Extents<3>{12, 4, 1});
  CHECK(view.is_contiguous());
  CHECK(&view(1, 2, 3) == &tensor(1, 2, 3));
  static_assert(std::is_convertible_v<StridedView<int, 3>, StridedView<const int, 3>>);
  static_assert(!std::is_convertible_v<StridedView<const int, 3>, StridedView<int, 3>>);
  static_assert(!std::is_constructible_v<StridedView<int, 3>, View<const int, 3>>);
}

TEST_CASE("a slice on any axis shows that part in place, and packs into one run") {
  auto tensor = counted(3, 4, 5);
  const StridedView<int, 3> whole(tensor.view());
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CAPTURE(axis);
    const auto part = whole.slice(axis, {1, 3});
    Extents<3> first{};
    first[axis] = 1;
    CHECK(&part(0, 0, 0) == &tensor(first[0], first[1], first[2]));
    std::vector<int> expected;
    for (std::size_t i = 0; i < part.extent(0); ++i) {
      for (std::size_t j = 0; j < part.extent(1); ++j) {
        for (std::size_t k = 0; k < part.extent(2); ++k) {
          expected.push_back(tensor(i + first[0], j + first[1], k + first[2]));
        }
      }
    }
    CHECK(in_order(part) == expected);
    CHECK(part.is_contiguous() == (axis == 0));
  }
  whole.slice(2, {4, 5})(2, 3, 0) = 1000;
  CHECK(tensor(2, 3, 4) == 1000);
}

TEST_CASE("a slice can be sliced again, be of an axis of extent 1, or be empty") {
  const auto tensor = counted(4, 1, 6);
  const StridedView<const int, 3> whole(tensor.view());
  CHECK(in_order(whole.slice(2, {1, 3}).slice(0, {2, 4})) == std::vector{13, 14, 19, 20});
  CHECK(whole.slice(1, {0, 1}).is_contiguous());
  CHECK(whole.slice(0, {3, 4}).slice(2, {1, 6}).is_contiguous());
  CHECK(whole.slice(2, {6, 6}).empty());
  CHECK(in_order(whole.slice(2, {6, 6})).empty());
  CHECK(in_order(whole.slice(0, {0, 0})).empty());
  CHECK(StridedView<const int, 2>().empty());
  const Tensor<int, 3> nothing(4, 0, 6);
  const auto part = StridedView<const int, 3>(nothing.view()).slice(2, {1, 3});
  CHECK(part.data() == nullptr);  // and no memory is pointed into that is not there
  CHECK(part.extents() == Extents<3>{4, 0, 2});
}

TEST_CASE("any strides will do: a matrix by columns") {
  const std::vector<int> by_columns{1, 2, 3, 4, 5, 6};
  const StridedView<const int, 2> view(by_columns.data(), {3, 2}, {1, 3});
  CHECK(view(2, 1) == 6);
  CHECK(in_order(view) == std::vector{1, 4, 2, 5, 3, 6});
}

TEST_CASE("whatever is strided packs its elements in order") {
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    Extents<4> extents;
    Extents<4> strides;
    std::size_t stride = 1;
    for (std::size_t axis = 4; axis > 0; --axis) {
      extents[axis - 1] = 1 + random() % (random() % 3 == 0 ? 1 : 7);
      strides[axis - 1] = extents[axis - 1] == 1 ? random() % 100 : stride;
      stride *= extents[axis - 1] + random() % 3 / 2;
    }
    if (random() % 4 == 0) std::swap(strides[0], strides[2]), std::swap(extents[0], extents[2]);
    std::vector<int> elements(stride + 4);
    for (int& x : elements) x = static_cast<int>(random());
    const StridedView<const int, 4> view(elements.data(), extents, strides);
    std::vector<int> expected;
    for (std::size_t a = 0; a < extents[0]; ++a) {
      for (std::size_t b = 0; b < extents[1]; ++b) {
        for (std::size_t c = 0; c < extents[2]; ++c) {
          for (std::size_t d = 0; d < extents[3]; ++d) expected.push_back(view(a, b, c, d));
        }
      }
    }
    REQUIRE(in_order(view) == expected);
  }
}

TEST_CASE("a slice of one axis of a contiguous array is rows of contiguous runs") {
  for (std::size_t at = 0; at < 27; ++at) {
    const std::size_t extents[] = {1 + at % 3, 1 + at / 3 % 3, 1 + at / 9};
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    CAPTURE(extents[2]);
    const auto tensor = counted(extents[0], extents[1], extents[2]);
    const StridedView<const int, 3> whole(tensor.view());
    for (std::size_t axis = 0; axis < 3; ++axis) {
      CAPTURE(axis);
      for (std::size_t size = 1; size <= extents[axis]; ++size) {
        const auto part = whole.slice(axis, {extents[axis] - size, extents[axis]});
        const fanout::detail::StridedRuns<3> runs(part);
        CHECK(runs.outer == 0);
        CHECK(runs.rows * runs.run == part.size());
      }
    }
  }
}

TEST_CASE("a slice of two axes is rows of contiguous runs along the outer axes") {
  const auto tensor = counted(3, 4, 5);
  const auto part = StridedView<const int, 3>(tensor.view()).slice(1, {1, 3}).slice(2, {1, 4});
  const fanout::detail::StridedRuns<3> runs(part);
  CHECK(runs.run == 3);
  CHECK(runs.rows == 2);
  CHECK(runs.pitch == 5);
  CHECK(runs.outer == 1);
}

TEST_CASE("a strided view is an array: its rows stay in place") {
  const auto tensor = counted(4, 2, 3);
  const auto columns = StridedView<const int, 3>(tensor.view()).slice(2, {1, 2});
  using traits = fanout::leaf_traits<StridedView<const int, 3>>;
  CHECK(traits::rows(columns) == 4);
  const auto piece = traits::piece(columns, 2, 4);
  CHECK(&piece(0, 0, 0) == &tensor(2, 0, 1));
  CHECK(piece.extents() == Extents<3>{2, 2, 1});
}
