// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What the caller asks of a call besides its arguments. Borrows the targets and the memory.
struct CallRequest {
  bool on_all = false;                      ///< runs on every device if no argument is split
  const backend::Memory* memory = nullptr;  ///< in which results are gathered; null: that of the settings
  const OutputTarget* targets = nullptr;    ///< memory of the caller's for outputs, in the order of the output() calls
  std::size_t target_count = 0;
};
inline constexpr CallRequest plain_request;
inline constexpr CallRequest on_all_request{.on_all = true};

}}}  // namespace fanout::v0::detail
