// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 {

namespace backend {

/// The workers of the process, one for each device and list of cores, so that all models share the queues of the
/// devices. A worker is made at its first use and lives until the process ends.
class Registry {
 public:
  /// Made by registry().
  explicit Registry(std::vector<int> cores) noexcept : cores_(std::move(cores)) {}

  /// The cores of the affinity mask that the process had when it first used fanout.
  const std::vector<int>& cores() const noexcept { return cores_; }

  /// Returns the worker of a device with these cores, and makes it if it is new. Starts no thread. A worker without
  /// cores never has one.
  [[gnu::cold]] FANOUT_INLINE Worker& worker(const DeviceId& id, const std::vector<int>& cores, bool bound);

 private:
  struct Node {
    Worker worker;
    Node* next;
  };

  [[gnu::cold]] FANOUT_INLINE Worker* find(const DeviceId& id, const std::vector<int>& cores, bool bound) const;

  const std::vector<int> cores_;
  detail::ForkSafeMutex mutex_;
  detail::Atomic<Node*> head_{nullptr};  // grows at its front only, so that it is whole in the child of a fork
};

}  // namespace backend

namespace detail {

[[gnu::visibility("default")]] inline Atomic<backend::Registry*> only_registry{nullptr};

}  // namespace detail

namespace backend {

/// The one registry of the process, also if several shared libraries were built with hidden visibility. Made at first
/// use and never destroyed, since workers may outlive main(). It is no static of this function, so that a fork while
/// another thread makes it does no harm.
[[gnu::cold]] FANOUT_INLINE Registry& registry();

}  // namespace backend

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/registry.ipp>
#endif
