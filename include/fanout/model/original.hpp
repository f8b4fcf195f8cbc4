// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The user's model, and the number of times it was changed.
template <class M>
struct Original {
  using model_type = M;
  static constexpr bool shared = true;  ///< a const `forward` runs on it, for all devices that share its memory

  M model;
  Atomic<std::uint64_t> version{0};
};

/// False for a factory, which makes a model for each device: there is no original.
template <class M>
concept HasOriginal = requires {
  typename Original<M>::model_type;
};

}}}  // namespace fanout::v0::detail
