// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Throws Error on a big-endian machine: elements go to files, and come from them, as they are in memory.
inline void check_byte_order(std::endian native = std::endian::native) {
  if (native == std::endian::little) return;
  throw Error(explain({.what = "safetensors files are little-endian, and this machine is not",
                       .advice = "save and load on a little-endian one"}));
}

}}}  // namespace fanout::v0::detail
