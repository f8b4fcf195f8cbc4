// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/enqueue_copy.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/pinned.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// A copy of a GPU's memory to the host, in order with the work of the streams' device.
struct Download {
  DeviceStreams* streams;
  void* to;
  const void* from;
  std::size_t bytes;
  std::size_t begun = 0;  ///< bytes that the GPU has been told to copy
};

/// Copies memory of GPUs to the host, and waits until all of it is there. The GPUs copy at the same time: straight to
/// pinned memory, otherwise to chunks of staging memory. While the host copies out one chunk, they fill the next ones.
class Downloads {
 public:
  /// Borrows the copies.
  Downloads(Download* copies, std::size_t count) noexcept : copies_(copies), count_(count) {}
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;
  /// If one failed, waits for the others: their memory is released next.
  FANOUT_INLINE ~Downloads();

  /// Throws DeviceLost and CudaError.
  FANOUT_INLINE void make();

 private:
  /// A chunk that a GPU fills.
  struct Flight {
    Staging::Room room;
    Run run{0, 0};
    const Download* copy = nullptr;
  };
  static constexpr std::uint32_t most_flights = 8 * Staging::most_chunks;

  static StreamRef stream_of(const Download& copy) { return copy.streams->compute(); }

  /// A copy of one chunk needs no event, since the host waits for the stream.
  static bool is_one_chunk(const Download& copy) noexcept { return copy.bytes <= Staging::chunk_bytes; }

  static void begin(Download& copy, void* to, const Run& run) {
    enqueue_copy(stream_of(copy), to, static_cast<const std::byte*>(copy.from) + run.begin, run.bytes,
                 cudaMemcpyDeviceToHost);
    copy.begun = run.begin + run.bytes;
  }

  static bool begin_pinned(Download& copy) {
    if (copy.bytes == 0 || !pinned_blocks().use(copy.to, copy.bytes, stream_of(copy))) return false;
    begin(copy, copy.to, {0, copy.bytes});
    return true;
  }

  /// Begins as many chunks as there are, of each copy in turn.
  FANOUT_INLINE void begin_chunks();

  FANOUT_INLINE bool begin_chunk(Download& copy);

  FANOUT_INLINE void finish_oldest();

  Download* const copies_;
  const std::size_t count_;
  Flight flights_[most_flights];  // a ring, from taken_ to started_
  std::uint32_t started_ = 0;
  std::uint32_t taken_ = 0;
  bool finished_ = false;
};

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/transfer/downloads.ipp>
#endif
