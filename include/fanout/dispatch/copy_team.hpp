// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/device/device_set.hpp>
#include <fanout/dispatch/fork_join.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Shares large copies among the threads of a model's devices, for copies that gathering cannot avoid. Borrows the set
/// of devices. Its type does not depend on their kinds.
class CopyTeam {
 public:
  template <Device... Ds>
  explicit CopyTeam(const DeviceSet<Ds...>& devices) noexcept
      : devices_(&devices), size_(devices.size()), run_(&run_on<Ds...>) {}

  std::size_t size() const noexcept { return size_; }

  /// Calls `body(i)` for each i < parts, at the same time, each for one device. `parts` is at most size(), and `body`
  /// must not throw. Returns when all have ended. May be called from any thread, also inside a call: the caller runs
  /// what no device has started.
  template <class Body>
  void share(std::size_t parts, const Body& body) const {
    run_(devices_, parts, ShardRunner(body));
  }

 private:
  template <Device... Ds>
  static void run_on(const void* devices, std::size_t parts, const ShardRunner& body) {
    Plan plan;
    for (std::size_t i = 0; i < parts; ++i) plan.add({.rows = {i, i + 1}, .device = i});
    run_shards(plan, *static_cast<const DeviceSet<Ds...>*>(devices), body);
  }

  const void* devices_;
  std::size_t size_;
  void (*run_)(const void* devices, std::size_t parts, const ShardRunner& body);
};

}}}  // namespace fanout::v0::detail
