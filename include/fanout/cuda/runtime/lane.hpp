// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/completions.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/worker/registry.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The streams of one CudaDevice: two streams on its GPU, staging memory, and the worker that drives it. Several lanes
/// on one GPU are several devices that share its memory. One more lane is for threads that have entered none of them.
/// Made when first named, which does not call CUDA. Never destroyed.
class Lane {
 public:
  Lane(Card& card, int instance, Lane* next)
      : card_(card),
        id_{.kind = "cuda", .index = card.index(), .instance = instance},
        worker_(backend::registry().worker(id_, backend::registry().cores(), false)),
        staging_(card),
        next_(next) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// The instance number of the lane for threads that have entered no device of the GPU.
  static constexpr int outside = -1;
  bool is_outside() const noexcept { return id_.instance == outside; }

  Card& card() const noexcept { return card_; }
  const DeviceId& id() const noexcept { return id_; }
  backend::Worker& worker() const noexcept { return worker_; }
  Staging& staging() noexcept { return staging_; }
  Lane* next() const noexcept { return next_; }

  /// The stream of the device's work and memory operations, in order.
  StreamRef compute() { return made(compute_); }
  /// The stream of copies from the host, which overlap with the device's work.
  StreamRef copies() { return made(copies_); }

  /// A Completion of all the device's work so far.
  backend::Completion completion() { return completions_.of(compute()); }

  /// Waits for all work in both streams. Throws if any of it failed.
  void synchronize() {
    card_.require();
    // Compute work waits for the copies, so in this order no stream is waited for twice.
    for (fanout::detail::Atomic<cudaStream_t>* stream : {&copies_, &compute_}) {
      if (cudaStream_t handle = stream->load(fanout::detail::MemoryOrder::acquire))
        StreamRef(handle, card_.index()).synchronize();
    }
  }

 private:
  StreamRef made(fanout::detail::Atomic<cudaStream_t>& stream) {
    cudaStream_t handle = stream.load(fanout::detail::MemoryOrder::acquire);
    if (handle == nullptr) [[unlikely]] {
      const fanout::detail::ForkSafeLock making(making_);
      handle = stream.load(fanout::detail::MemoryOrder::acquire);
      if (handle == nullptr) {
        handle = Stream(card_.index()).release();
        stream.store(handle, fanout::detail::MemoryOrder::release);
      }
    }
    return {handle, card_.index()};
  }

  Card& card_;
  const DeviceId id_;
  backend::Worker& worker_;
  fanout::detail::Atomic<cudaStream_t> compute_{nullptr};
  fanout::detail::Atomic<cudaStream_t> copies_{nullptr};
  fanout::detail::ForkSafeMutex making_;
  Staging staging_;
  Completions completions_;
  Lane* const next_;
};

/// The lane with this instance number on a GPU; made at first use.
inline Lane& lane_of(Card& card, int instance) {
  const auto find = [&]() -> Lane* {
    Lane* lane = card.lanes().load(fanout::detail::MemoryOrder::acquire);
    while (lane != nullptr && lane->id().instance != instance) lane = lane->next();
    return lane;
  };
  if (Lane* known = find()) return *known;
  const fanout::detail::ForkSafeLock making(card.making());
  if (Lane* known = find()) return *known;
  auto* made = new Lane(card, instance, card.lanes().load(fanout::detail::MemoryOrder::relaxed));
  card.lanes().store(made, fanout::detail::MemoryOrder::release);
  return *made;
}

class EnteredLane;

/// The lane that the thread entered last and has not left.
[[gnu::visibility("default")]] inline thread_local constinit const EnteredLane* innermost_lane = nullptr;

/// Enters a lane while this lives: the lane's GPU is the thread's current device, and operations on the GPU's memory
/// are in order with the lane's work. These must end in the reverse order of their beginnings.
class EnteredLane {
 public:
  explicit EnteredLane(Lane& lane) : guard_(lane.card()), lane_(lane), outer_(innermost_lane) { innermost_lane = this; }
  EnteredLane(const EnteredLane&) = delete;
  EnteredLane& operator=(const EnteredLane&) = delete;
  ~EnteredLane() { innermost_lane = outer_; }

  Lane& lane() const noexcept { return lane_; }
  const EnteredLane* outer() const noexcept { return outer_; }

 private:
  DeviceGuard guard_;
  Lane& lane_;
  const EnteredLane* outer_;
};

/// The lane that orders this thread's operations on the GPU's memory: the innermost entered lane of that GPU. Threads
/// that have entered none, for example to take results, share the outside lane. So they do not wait for later work of
/// the devices.
inline Lane& current_lane(Card& card) {
  for (const EnteredLane* entered = innermost_lane; entered != nullptr; entered = entered->outer()) {
    if (&entered->lane().card() == &card) return entered->lane();
  }
  return lane_of(card, Lane::outside);
}

}}}  // namespace fanout::v0::cuda::detail
