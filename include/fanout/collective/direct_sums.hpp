// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/element_type.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// An element type whose arrays only devices add, so that the host needs no code for it.
template <class T>
inline constexpr backend::ElementType added_by_devices = {
    .name = &type_name<T>, .size = sizeof(T), .kind = element_kind<T>, .reduces = nullptr, .reduce = nullptr};

/// Adds arrays of the shards of one call on their devices, without host memory. Opens the transport for the first sum.
/// Borrows the transport, the plan and the devices, which the `device` of each shard indexes.
class DirectSums {
 public:
  /// Adds nothing if the transport is null.
  DirectSums(const backend::CollectiveTransport* transport, const Plan& plan, const DeviceId* devices) noexcept
      : transport_(transport), plan_(plan), devices_(devices) {}
  DirectSums(const DirectSums&) = delete;
  DirectSums& operator=(const DirectSums&) = delete;
  ~DirectSums() {
    if (ranks_ != nullptr) ranks_->close();
  }

  bool has_transport() const noexcept { return transport_ != nullptr; }

  /// Makes a sum with one array of each shard, and waits for it. Returns false, with nothing done, if the devices
  /// cannot add such arrays. Throws what the transport throws, and the failure of a device.
  template <std::same_as<backend::ResultSum> Sum>  // a template: only those who add pay for compiling open()
  bool add(const Sum& sum) {
    if (!opened_) open<DeviceId>();
    return ranks_ != nullptr && ranks_->add_results(sum);
  }

 private:
  template <class Id>
  void open() {
    const InlineArray<Id> ids(plan_.size(), [this](std::size_t i) { return devices_[plan_[i].device]; });
    if (transport_ != nullptr) ranks_ = transport_->open({ids.data(), ids.size()});
    opened_ = true;
  }

  const backend::CollectiveTransport* transport_;
  const Plan& plan_;
  const DeviceId* devices_;
  bool opened_ = false;
  backend::TransportRanks* ranks_ = nullptr;
};

}}}  // namespace fanout::v0::detail
