// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

/// What a call may do after a device has failed, or had too little memory.
enum class Again : std::uint8_t { on_other_devices, with_fewer_rows, with_single_rows };

/// What depends on the types of a call, as a table of functions: so all calls share the code that is no template.
struct CallTypes {
  /// Why the call cannot do it, as the end of a sentence; null if it can.
  const char* (*refusal)(Again how) noexcept;
  /// Empties the slot of a shard that runs again.
  void (*renew)(void* call, std::size_t shard) noexcept;
  /// Runs a shard on a device, on this thread. Returns false if the device failed, or has no memory.
  bool (*run)(const void* call, std::size_t shard, std::size_t device) noexcept;
  /// That of the call's arguments: see batch_shape().
  std::uint64_t (*shape)(const void* call);
};

/// A call for code that does not know its types. Borrows it.
struct TypedCall {
  const CallTypes* types;
  void* call;

  const char* refusal(Again how) const noexcept { return types->refusal(how); }
  void renew(std::size_t shard) const noexcept { types->renew(call, shard); }
  bool run(std::size_t shard, std::size_t device) const noexcept { return types->run(call, shard, device); }
  std::uint64_t shape() const { return types->shape(call); }
};

}}}  // namespace fanout::v0::detail
