// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/tree/dict.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout_test {

using namespace fanout::literals;

/// An array leaf of our own, so that this level is tested without those of the memory level.
struct Column {};

using NamedValues = decltype(fanout::dict("a"_k = 1, "b"_k = 2.0));
struct OneNumber {
  int a;
};
struct DerivedNumber : OneNumber {};
struct WrappedColumn {
  Column value;
};
class ListedColumn {
  int a_ = 0;
  Column column_;
  [[maybe_unused]] friend constexpr auto fields(const ListedColumn*) {
    return fanout::dict("a"_k = &ListedColumn::a_, "c"_k = &ListedColumn::column_);
  }
};
class HiddenColumn {
  [[maybe_unused]] Column column_;
};

}  // namespace fanout_test

template <>
struct fanout::leaf_traits<fanout_test::Column> {
  using piece_type = fanout_test::Column;
  static std::size_t rows(const fanout_test::Column&);
  static piece_type piece(const fanout_test::Column&, std::size_t, std::size_t);
};
template <>
inline constexpr bool fanout::detail::wraps_tree<fanout_test::WrappedColumn> = true;
