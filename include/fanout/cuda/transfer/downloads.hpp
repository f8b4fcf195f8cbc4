// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <cuda_runtime_api.h>

#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/enqueue_copy.hpp>
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
  ~Downloads() {
    for (std::size_t i = 0; i < count_ && !finished_; ++i) {
      if (copies_[i].begun == 0) continue;
      const QuietGuard entered(copies_[i].streams->gpu());
      if (entered.entered()) note(::cudaStreamSynchronize(stream_of(copies_[i]).get()), stream_of(copies_[i]).device());
    }
  }

  /// Throws DeviceLost and CudaError.
  void make() {
    bool straight = false;
    for (std::size_t i = 0; i < count_; ++i) straight = begin_pinned(copies_[i]) || straight;
    for (;;) {
      begin_chunks();
      if (taken_ == started_) break;
      finish_oldest();
    }
    for (std::size_t i = 0; i < count_ && straight; ++i) {
      if (i == 0 || copies_[i].streams != copies_[i - 1].streams) stream_of(copies_[i]).synchronize();
    }
    finished_ = true;
  }

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
  void begin_chunks() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < count_ && started_ - taken_ < most_flights; ++i) {
        if (copies_[i].begun < copies_[i].bytes) more = begin_chunk(copies_[i]) || more;
      }
    }
  }

  bool begin_chunk(Download& copy) {
    const Run run = Staging::next_run(copy.begun, copy.bytes);
    Staging& staging = copy.streams->staging();
    // Waits for a chunk only if this thread holds none: see Staging::take().
    Staging::Room room =
        started_ == taken_ ? staging.take(stream_of(copy), run.bytes) : staging.try_take(stream_of(copy), run.bytes);
    if (!room) return false;
    begin(copy, room.data(), run);
    if (!is_one_chunk(copy)) room.done();
    Flight& flight = flights_[started_++ % most_flights];
    flight.room = static_cast<Staging::Room&&>(room);
    flight.run = run;
    flight.copy = &copy;
    return true;
  }

  void finish_oldest() {
    Flight& flight = flights_[taken_++ % most_flights];
    if (is_one_chunk(*flight.copy)) {
      stream_of(*flight.copy).synchronize();
      flight.room.is_over();
    } else {
      flight.room.wait();
    }
    std::memcpy(static_cast<std::byte*>(flight.copy->to) + flight.run.begin, flight.room.data(), flight.run.bytes);
    flight.room = Staging::Room();
  }

  Download* const copies_;
  const std::size_t count_;
  Flight flights_[most_flights];  // a ring, from taken_ to started_
  std::uint32_t started_ = 0;
  std::uint32_t taken_ = 0;
  bool finished_ = false;
};

}}}  // namespace fanout::v0::cuda::detail
