// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

namespace fanout::inline v0 {

/// How far apart what one core writes stands from what another one uses: lines of the cache have 64 bytes, and are
/// fetched in pairs.
inline constexpr std::size_t cores_apart = 128;

}  // namespace fanout::inline v0
