// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/device/device_set.hpp>
#include <fanout/dispatch/fork_join.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The devices of a model, among whom a caller shares what is not a model's work: copies that gathering cannot avoid.
/// Borrows the set of devices, so that it need not know their kinds.
class Crew {
 public:
  template <Device... Ds>
  explicit Crew(const DeviceSet<Ds...>& devices) noexcept
      : devices_(&devices), size_(devices.size()), run_(&run_on<Ds...>) {}

  std::size_t size() const noexcept { return size_; }

  /// Calls `body(i)`, which does not throw, for each i < parts, at the same time and each for one device; no more parts
  /// than size(). Returns when all have ended. From any thread, also from inside a call: what no device has started, the
  /// caller does itself.
  template <class Body>
  void share(std::size_t parts, const Body& body) const {
    run_(devices_, parts, {[](const void* of, std::size_t i) noexcept { (*static_cast<const Body*>(of))(i); }, &body});
  }

 private:
  /// Any body as one type, so that shards are run by one function for each kind of set.
  struct AnyBody {
    void (*call)(const void* of, std::size_t i) noexcept;
    const void* of;
    void operator()(std::size_t i) const noexcept { call(of, i); }
  };

  template <Device... Ds>
  static void run_on(const void* devices, std::size_t parts, const AnyBody& body) {
    Plan plan;
    for (std::size_t i = 0; i < parts; ++i) plan.add({.rows = {i, i + 1}, .device = i});
    run_shards(plan, *static_cast<const DeviceSet<Ds...>*>(devices), body);
  }

  const void* devices_;
  std::size_t size_;
  void (*run_)(const void* devices, std::size_t parts, const AnyBody& body);
};

}}}  // namespace fanout::v0::detail
