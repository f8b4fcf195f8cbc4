// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "adapt/other_mdspan.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/adapt/mdspan.hpp>
#include <fanout/fanout.hpp>

template <>
struct fanout::backend::strided_layout<other::layout_left> {
  using type = other::layout_stride;
};

namespace {

template <std::size_t... E>
using Extents = other::extents<int, E...>;
template <std::size_t R>
using Index = std::array<int, R>;
constexpr std::size_t any = std::dynamic_extent;

using Cube = other::mdspan<const int, Extents<any, any, 2>>;
using Column = other::mdspan<int, Extents<any>, other::layout_left>;

static_assert(std::is_same_v<fanout::MdspanRows<Cube>, Cube>);
static_assert(std::is_same_v<fanout::MdspanRows<Column>, other::mdspan<const int, Extents<any>, other::layout_stride>>);

}  // namespace

TEST_CASE("a type with the interface of std::mdspan is recognised as an array") {
  std::vector<int> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Cube cube(numbers.data(), Cube::mapping_type(Cube::extents_type(Index<3>{4, 3, 2})));
  const Column column(numbers.data(), Column::mapping_type(Column::extents_type(Index<1>{4})));
  const fanout::ParallelModel model{[](const auto& a, const auto& b) {
                                      return std::tuple{a, b, *a.data_handle(), fanout::stack(b)};
                                    },
                                    fanout::host_devices(2)};
  const auto [a, b, begins, stacked] = model(cube, column);
  CHECK(a.extents() == fanout::Extents<3>{4, 3, 2});
  CHECK(std::vector(a.begin(), a.end()) == numbers);
  CHECK(std::vector(b.begin(), b.end()) == std::vector{0, 1, 2, 3});
  CHECK(std::vector(begins.begin(), begins.end()) == std::vector{0, 12});
  CHECK(stacked.extents() == fanout::Extents<2>{2, 2});
  CHECK(fanout::as_view(cube)(3, 2, 1) == 23);
}
