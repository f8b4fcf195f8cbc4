// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

class Parcels;

/// The small arrays of one shard, side by side: memory of a GPU, and page-locked memory of the host of the same size.
/// What lies at an offset of one is copied to or from the same offset of the other. So all of them take one copy each
/// way, and no allocation. Used by one thread at a time, but for release().
class Parcel {
 public:
  static constexpr std::size_t bytes = std::size_t{1} << 18;
  /// The size of the largest array in it. The copy of a larger one takes longer than the call for it.
  static constexpr std::size_t small = std::size_t{1} << 16;

  /// Room for an array in the GPU's memory, aligned to 256 bytes. Null if it is too large, or if the parcel is full. To
  /// be released. Throws what send() throws.
  FANOUT_INLINE void* add(std::size_t size);
  /// The same for a copy of these bytes of the host, which send() begins.
  FANOUT_INLINE void* add(const void* from, std::size_t size);

  /// Begins to copy what was added since the last time to the GPU. Throws DeviceLost and CudaError.
  void send() {
    if (sent_ != filled_) send_filled();
  }

  /// Notes that an array of the parcel is wanted at `to` in host memory: see fetch() and deliver(). Call this only if
  /// has_room_to_want().
  FANOUT_INLINE void want(void* to, const void* from, std::size_t size) noexcept;
  bool has_room_to_want() const noexcept { return wanted_count_ != most_wanted; }
  /// Begins to copy what is wanted to the parcel's host memory. Throws DeviceLost and CudaError.
  FANOUT_INLINE void fetch();
  /// Call this when that is done: copies it to where it is wanted.
  FANOUT_INLINE void deliver() noexcept;

  /// True if the array lies in the GPU's memory of the parcel.
  bool has(const void* array) const noexcept {
    const std::byte* const first = on_gpu_.load(fanout::detail::MemoryOrder::acquire);
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(array) - first);
    return first != nullptr && offset < bytes;
  }

  /// The stream that the copies and the work on the arrays are in order with.
  StreamRef stream() const noexcept { return stream_; }

  /// Call this for each array, and by who took the parcel when its work is done. The last call gives it back.
  FANOUT_INLINE void release() noexcept;

 private:
  friend Parcels;

  struct Wanted {
    void* to;
    std::size_t offset;
    std::size_t size;
  };
  static constexpr std::size_t most_wanted = 32;

  FANOUT_INLINE Parcel(Parcels& home, StreamRef stream);

  std::size_t offset_of(const void* array) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(array) -
                                    on_gpu_.load(fanout::detail::MemoryOrder::relaxed));
  }
  FANOUT_INLINE void* claim(std::size_t size) noexcept;
  FANOUT_INLINE void send_filled();

  Parcels& home_;
  const StreamRef stream_;
  std::byte* const on_host_;
  fanout::detail::Atomic<std::byte*> on_gpu_{nullptr};  // null if it was trimmed
  fanout::detail::Atomic<std::uint32_t> holders_{0};
  std::size_t used_ = 0;
  // What lies from sent_ to filled_ is on the host only.
  std::size_t sent_ = 0;
  std::size_t filled_ = 0;
  Wanted wanted_[most_wanted];
  std::size_t wanted_count_ = 0;
  Parcel* next_ = nullptr;  // of those that nobody uses
};

/// The parcels of one device. Made when all others are in use, and reused. Thread-safe.
class Parcels {
 public:
  /// The host's memory of a parcel is on the NUMA node `node` if the kernel allows it. Negative: anywhere.
  explicit Parcels(GpuState& gpu, int node) noexcept : gpu_(gpu), node_(node) {}
  Parcels(const Parcels&) = delete;
  Parcels& operator=(const Parcels&) = delete;

  /// An empty parcel for work in this stream, always the same one. To be released. Null if there are too many, or if
  /// there is no memory. Throws DeviceLost and CudaError.
  FANOUT_INLINE Parcel* take(StreamRef stream);

  /// The parcel whose memory on the GPU contains the array. Null if none does.
  FANOUT_INLINE Parcel* find(const void* array) const noexcept;

  /// Releases the GPU's memory of the parcels that nobody uses.
  FANOUT_INLINE void trim() noexcept;

 private:
  friend Parcel;

  FANOUT_INLINE Parcel* make(StreamRef stream);
  FANOUT_INLINE void give(Parcel& parcel) noexcept;

  /// So many shards of a device may be in flight with small arrays that are packed. Others copy them one by one.
  static constexpr std::size_t most = 16;

  GpuState& gpu_;
  const int node_;
  fanout::detail::ForkSafeMutex mutex_;  // guards free_ and the making of parcels
  Parcel* free_ = nullptr;
  fanout::detail::Atomic<Parcel*> all_[most]{};
};

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/parcel.ipp>
#endif
