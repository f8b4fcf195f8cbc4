// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <mdspan>
#include <numeric>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/adapt/mdspan.hpp>
#include <fanout/fanout.hpp>

namespace {

using fanout::host_devices;
using fanout::MdspanRows;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

using Matrix = std::mdspan<const int, std::dextents<std::size_t, 2>>;
using Columns = std::mdspan<int, std::dextents<int, 2>, std::layout_left>;
using ThreeWide = std::mdspan<const int, std::extents<int, std::dynamic_extent, 3>>;
using Fixed = std::mdspan<int, std::extents<int, 6, 3>>;
using Strided = std::mdspan<const int, std::dextents<int, 2>, std::layout_stride>;

static_assert(fanout::Mdspan<Matrix> && fanout::ArrayLeaf<Matrix> && fanout::ArrayLeaf<Columns>);
static_assert(std::is_same_v<MdspanRows<Matrix>, Matrix>, "row-major stays row-major");
static_assert(std::is_same_v<MdspanRows<ThreeWide>, ThreeWide>);
static_assert(std::is_same_v<MdspanRows<Fixed>, ThreeWide>, "fewer rows than the type says, and const");
static_assert(std::is_same_v<MdspanRows<Columns>, Strided>);
static_assert(std::is_same_v<MdspanRows<Strided>, Strided>);
static_assert(!fanout::Mdspan<std::mdspan<int, std::extents<int>>>, "no axis, no rows");
static_assert(!fanout::Mdspan<std::span<int>> && !fanout::Mdspan<View<int, 2>>);

std::vector<int> counted(std::size_t size) {
  std::vector<int> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Every range of rows shows the elements of these rows, where they lie.
template <class X>
void shows_rows(const X& x) {
  using Traits = fanout::leaf_traits<X>;
  const auto rows = static_cast<typename X::index_type>(Traits::rows(x));
  CHECK(rows == x.extent(0));
  for (auto begin = rows; begin > 0; --begin) {
    const auto first = begin - 1;
    const MdspanRows<X> some = Traits::piece(x, static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
    CHECK(some.extent(0) == rows - first);
    for (auto i = first; i < rows; ++i) {
      for (typename X::index_type j = 0; j < x.extent(1); ++j) CHECK(&some[i - first, j] == &x[i, j]);
    }
  }
}

}  // namespace

TEST_CASE("an mdspan is split over any number of devices, and put together as a tensor") {
  const std::vector numbers = counted(10);
  const Matrix x(numbers.data(), 5, 2);
  for (const int devices : {1, 2, 3}) {
    CAPTURE(devices);
    const ParallelModel model{[](Matrix rows) {
                                return std::tuple{rows, static_cast<int>(rows.extent(0))};
                              },
                              host_devices(devices)};
    const auto [same, rows] = model(x);
    static_assert(std::is_same_v<decltype(same), const Tensor<int, 2>>);
    CHECK(same.extents() == fanout::Extents<2>{5, 2});
    CHECK(std::vector(same.begin(), same.end()) == numbers);
    CHECK(rows.size() == static_cast<std::size_t>(devices));
  }
}

TEST_CASE("rows of any layout and extents are passed in place") {
  std::vector numbers = counted(24);
  shows_rows(Matrix(numbers.data(), 8, 3));
  shows_rows(Columns(numbers.data(), 8, 3));
  shows_rows(ThreeWide(numbers.data(), 8));
  shows_rows(Fixed(numbers.data()));
  shows_rows(Strided(numbers.data(), {std::dextents<int, 2>(4, 2), std::array{6, 2}}));
}

TEST_CASE("a column-major mdspan comes out row-major") {
  std::vector numbers = counted(6);
  const ParallelModel model{[](Strided rows) { return std::tuple{rows, fanout::psum(rows)}; }, host_devices(2)};
  const auto [same, sum] = model(Columns(numbers.data(), 2, 3));
  CHECK(std::vector(same.begin(), same.end()) == std::vector{0, 2, 4, 1, 3, 5});
  CHECK(std::vector(sum.begin(), sum.end()) == std::vector{1, 5, 9});
}

TEST_CASE("arrays that do not fit together are refused with the place, the shard and the extents") {
  const std::vector numbers = counted(6);
  const ParallelModel model{[](Matrix rows) { return Matrix(rows.data_handle(), 1, rows.extent(0)); }, host_devices(2)};
  CHECK_THROWS_WITH_AS(model(Matrix(numbers.data(), 3, 2)),
                       "replicas returned arrays of different extents at output: expected trailing extents of [1, 2] "
                       "as from shard 0 on host:0, rows [0, 2), found [1, 1] from shard 1 on host:1, rows [2, 3); "
                       "arrays are concatenated by rows, so all other axes must agree",
                       fanout::ShapeMismatch);
}

TEST_CASE("an mdspan is shown as a View, and a View as an mdspan") {
  Tensor<int, 2> tensor(3, 2);
  const auto x = fanout::as_mdspan(tensor);
  x[2, 1] = 7;
  CHECK(tensor(2, 1) == 7);
  CHECK(fanout::as_mdspan(std::as_const(tensor)).data_handle() == tensor.data());
  const View<int, 2> view = fanout::as_view(x);
  CHECK(view.data() == tensor.data());
  CHECK(view.extents() == tensor.extents());
  CHECK_THROWS_WITH_AS(fanout::as_view(Columns(tensor.data(), 3, 2)),
                       "a view of an mdspan: expected elements that follow each other in row-major order, found a "
                       "stride of 3 on axis 1 of [3, 2]; copy them into a Tensor first",
                       fanout::ShapeMismatch);
  CHECK(fanout::as_view(Columns(tensor.data(), 6, 1)).extent(0) == 6);
}

TEST_CASE("a result that overlaps an input mdspan is refused, whatever its strides") {
  std::vector<int> numbers(12);
  const std::vector<int> rows(3);
  const ParallelModel model{[](fanout::Context auto& ctx, const auto&...) { return fanout::output<int>(ctx); },
                            host_devices(2)};
  const Strided middle(numbers.data() + 1, {std::dextents<int, 2>(4, 1), std::array{3, 1}});
  CHECK_THROWS_AS(model.into(View<int, 1>(numbers.data() + 8, 3))(rows, fanout::broadcast(middle)),
                  fanout::InvalidArgument);
  CHECK_NOTHROW(model.into(View<int, 1>(numbers.data() + 11, 1))(std::vector<int>(1), fanout::broadcast(middle)));
}
