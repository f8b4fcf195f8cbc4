// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>

#include <fanout/base/requirements.hpp>
#include <fanout/call/shard_remains.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// If what follows throws, waits for the work that the device has already, since it uses memory that is released now.
/// If the device has a clock of its own, the caller learns of the exception when it happens on that clock.
template <class D>
struct SettledIfThrown {
  const D& device;
  ShardRemains& shard;
  int thrown = std::uncaught_exceptions();

  ~SettledIfThrown() {
    if (std::uncaught_exceptions() == thrown) return;
    try {
      device.synchronize();
      if constexpr (HasOwnClock<D> && requires { backend::Completion(device.completion()); }) {
        shard.completion = device.completion();
      }
    } catch (...) {  // the exception in flight takes precedence
    }
  }
};
template <class D>
  requires(!HasOwnClock<D> && requires(const D& device) { requires noexcept(device.synchronize()); })
struct SettledIfThrown<D> {
  const D& device;
  ShardRemains& shard;
};

}}}  // namespace fanout::v0::detail
