// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/timeout.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The Timeout of a shard that waited in a collective for ranks which had not come at the deadline of the call. The
/// call throws it as a plain Timeout, not in a ReplicaError.
class [[gnu::visibility("default")]] RanksLate : public Timeout {
 public:
  using Timeout::Timeout;
};

}}}  // namespace fanout::v0::detail
