// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/tie_members.hpp>

#include "support/struct_of.hpp"

using fanout::detail::tie_members;
using fanout_test::StructOf;

namespace {

template <class Tied, std::size_t... I>
bool are_one_behind_the_other(const Tied& tied, const int* first, std::index_sequence<I...>) {
  return ((&std::get<I>(tied.references) == first + I) && ...);
}

template <std::size_t N>
bool ties_in_order() {
  StructOf<int, N> object{};
  const void* const first = &object;
  return are_one_behind_the_other(tie_members(object), static_cast<const int*>(first), std::make_index_sequence<N>());
}

template <std::size_t... N>
bool all_tie_in_order(std::index_sequence<N...>) {
  return (ties_in_order<N>() && ...);
}

struct Mixed {
  int number;
  const std::string name;
  std::unique_ptr<int> pointer;
  StructOf<int, 2> inner;
  const int& reference;
  int&& rvalue;
};

template <class X, std::size_t I>
using type = typename decltype(tie_members(std::declval<X&>()))::template type<I>;

}  // namespace

TEST_CASE("members are referred to in their order, in structs of 0 to 32") {
  CHECK(all_tie_in_order(std::make_index_sequence<33>()));
}

TEST_CASE("members are known by the type that they are declared with") {
  static_assert(std::is_same_v<type<Mixed, 0>, int>);
  static_assert(std::is_same_v<type<Mixed, 1>, const std::string>);
  static_assert(std::is_same_v<type<Mixed, 2>, std::unique_ptr<int>>);
  static_assert(std::is_same_v<type<Mixed, 3>, StructOf<int, 2>>);
  static_assert(std::is_same_v<type<Mixed, 4>, const int&>);
  static_assert(std::is_same_v<type<Mixed, 5>, int&&>);
  static_assert(std::is_same_v<type<const Mixed, 0>, const int>, "const where the struct is");
  static_assert(std::is_same_v<type<const Mixed, 5>, int&&>);

  int one = 1;
  Mixed mixed{1, "x", nullptr, {}, one, std::move(one)};
  std::get<0>(tie_members(mixed).references) = 7;
  CHECK(mixed.number == 7);
  CHECK(&std::get<4>(tie_members(std::as_const(mixed)).references) == &one);
  CHECK(&std::get<3>(tie_members(std::as_const(mixed)).references) == &mixed.inner);
}
