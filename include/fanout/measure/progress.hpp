// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 {

/// How far a call is: see Options::progress.
struct Progress {
  std::size_t rows_done = 0;  ///< of the shards that have ended without an exception
  std::size_t rows = 0;       ///< of the call; those of other ranks do not count
};

}}  // namespace fanout::v0
