// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 {

/// Where a Loader is: all that a later run needs to go on with the same samples. A plain struct of numbers, which can
/// be saved as any tree.
struct LoaderPosition {
  std::uint64_t epoch = 0;
  std::uint64_t row = 0;   ///< the next row of the epoch; rows before it have been handed out
  std::uint64_t rows = 0;  ///< the loader's rows in an epoch
  std::uint64_t seed = 0;  ///< that of the Shuffle, or 0
  bool shuffled = false;

  friend constexpr bool operator==(const LoaderPosition&, const LoaderPosition&) = default;
};

}}  // namespace fanout::v0
