// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/element_type.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/memory_space.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// An element type whose arrays only devices add, so that the host needs no code for it.
template <class T>
inline constexpr backend::ElementType added_by_devices = {
    .name = &type_name<T>, .size = sizeof(T), .kind = element_kind<T>, .reduces = nullptr, .reduce = nullptr};

/// Sums of arrays over the shards that the devices of a call make without host memory, while its results are gathered.
/// Borrows the transport, which is opened for the first array that lies on the shards' devices.
class DirectSums {
 public:
  /// Null if there is no transport: then nothing is added.
  explicit DirectSums(const backend::CollectiveTransport* transport) noexcept : transport_(transport) {}
  DirectSums(const DirectSums&) = delete;
  DirectSums& operator=(const DirectSums&) = delete;
  ~DirectSums() {
    if (ranks_ != nullptr) ranks_->close();
  }

  /// Adds the shards' arrays, with `weighted` each times its shard's share of the rows, and writes the sum to `result` in
  /// the target's memory. Waits for it. Returns false, with nothing done, if the devices cannot do that. Throws what the
  /// transport throws, and the failure of a device.
  template <class T, class X>
  bool add(const ShardResults<X>& pieces, const GatherTarget& place, bool weighted, T* result) {
    if (transport_ == nullptr || pieces.size() < 2 || place.target.space == host_memory) return false;
    InlineArray<backend::WeightedArray> arrays(pieces.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i] = {pieces[i].data(), pieces[i].space()};
    return make({.type = &added_by_devices<T>, .count = pieces[0].size(), .to = result}, arrays, place, weighted);
  }

 private:
  // Templates, so that only those who need them pay for compiling them.

  template <class Arrays>
  bool make(backend::ResultSum sum, Arrays& arrays, const GatherTarget& place, bool weighted) {
    while (sum.root < arrays.size() && !(arrays[sum.root].space == place.target.space)) ++sum.root;
    if (sum.root == arrays.size()) return false;
    for (std::size_t i = 0; i < arrays.size() && weighted; ++i) {
      if (!place.counts(i)) return false;  // its mean may be NaN
      arrays[i].weight = place.share(i);
    }
    if (!opened_) open(place);
    sum.arrays = {arrays.data(), arrays.size()};
    return ranks_ != nullptr && ranks_->add_results(sum);
  }

  template <std::same_as<GatherTarget> Place>
  void open(const Place& place) {
    using Id = std::remove_cvref_t<decltype(place.device(0))>;
    const InlineArray<Id> devices(place.size(), [&place](std::size_t i) { return place.device(i); });
    ranks_ = transport_->open({devices.data(), devices.size()});
    opened_ = true;
  }

  const backend::CollectiveTransport* transport_;
  bool opened_ = false;
  backend::TransportRanks* ranks_ = nullptr;
};

}}}  // namespace fanout::v0::detail
