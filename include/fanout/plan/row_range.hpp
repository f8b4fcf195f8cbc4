// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/base/annotate.hpp>

namespace fanout::inline v0 {

/// The rows [begin, end) of a batch.
struct RowRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  FANOUT_HOST_DEVICE constexpr std::size_t size() const noexcept { return end - begin; }
  FANOUT_HOST_DEVICE constexpr bool empty() const noexcept { return begin == end; }

  friend constexpr bool operator==(const RowRange&, const RowRange&) = default;
};

/// `[15, 30)`.
inline std::string to_string(const RowRange& rows) {
  std::string text = "[";  // added to, since g++ 12 warns of an overlap that is none in "[" + to_string(...) at -O3
  text += std::to_string(rows.begin) + ", " + std::to_string(rows.end) + ")";
  return text;
}

}  // namespace fanout::inline v0
