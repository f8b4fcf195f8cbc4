// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

// Replaces the library's header: the modelled machine does not fork.

namespace fanout { inline namespace v0 { namespace detail {

inline std::uint32_t fork_epoch() noexcept { return 0; }

}}}  // namespace fanout::v0::detail
