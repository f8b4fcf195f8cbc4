// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// A range of rows, and the device that runs it, by its position in the device set.
struct Shard {
  RowRange rows;
  std::size_t device = 0;

  friend constexpr bool operator==(const Shard&, const Shard&) = default;
};

}}  // namespace fanout::v0
