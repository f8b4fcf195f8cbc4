// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/enqueue_copy.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/downloads.hpp>
#include <fanout/cuda/transfer/peer_reads.hpp>
#include <fanout/cuda/transfer/pinned.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Copies host memory to the streams' GPU in one of its streams. When this returns, the source has been read, unless it
/// is pinned.
FANOUT_INLINE void send(DeviceStreams& streams, StreamRef stream, void* to, const void* from, std::size_t bytes);

/// Copies by `copy(stream)`, in the copies stream and in order with the device's work: after earlier work, which may
/// still use the memory, and before later work.
template <class Copy>
void copy_in_order(DeviceStreams& streams, const Copy& copy) {
  const StreamRef copies = streams.copies();
  streams.let_wait(copies, streams.compute());
  Unfinished copying(copies);
  copy(copies);
  streams.let_wait(streams.compute(), copies);
  copying.finished();
}

/// Copies host memory to the streams' GPU, in order with the device's work. Waits only while all chunks are in use.
inline void upload(DeviceStreams& streams, void* to, const void* from, std::size_t bytes) {
  copy_in_order(streams, [&](StreamRef copies) { send(streams, copies, to, from, bytes); });
}

/// Copies memory of the streams' GPU to the host, in order with the device's work. Waits until all of it is there.
inline void download(DeviceStreams& streams, void* to, const void* from, std::size_t bytes) {
  Download copy{&streams, to, from, bytes};
  Downloads(&copy, 1).make();
}

/// Copies another GPU's memory through the host, if the GPUs cannot copy directly. In order as fetch(). Waits only
/// while all chunks are in use.
FANOUT_INLINE void fetch_by_host(DeviceStreams& to, StreamRef target, void* to_data, DeviceStreams& from,
                                 const void* from_data, std::size_t bytes);

/// Copies another GPU's memory in a stream of the target's. The copy waits for earlier work of the source's device,
/// whose later work waits for the copy. Threads that have entered no device of the source's GPU have waited for their
/// work. So the copy waits for none of theirs, and they wait for it only if they overwrite or release the source. Does
/// not wait if the GPUs copy directly.
FANOUT_INLINE void fetch(DeviceStreams& to, StreamRef target, void* to_data, DeviceStreams& from, const void* from_data,
                         std::size_t bytes);

/// Copies another GPU's memory to memory of the streams' GPU, in order with the work of both devices. `how` is fetch or
/// fetch_by_host.
inline void exchange(DeviceStreams& to, void* to_data, DeviceStreams& from, const void* from_data, std::size_t bytes,
                     decltype(fetch)& how = fetch) {
  copy_in_order(to, [&](StreamRef copies) { how(to, copies, to_data, from, from_data, bytes); });
}

/// Copies another GPU's memory in the source's stream, so that copies from several GPUs run at the same time. Returns
/// true if the caller must wait for the source's stream, since no stream of the target's does. In order as exchange().
FANOUT_INLINE bool push(DeviceStreams& to, void* to_data, DeviceStreams& from, const void* from_data,
                        std::size_t bytes);

/// Allocates memory on the streams' GPU and copies to it by `copy(stream, data)`. Earlier work of the device does not
/// use this memory, so the copy overlaps with that work. If there is none, the copy needs no stream of its own. Throws
/// OutOfMemory, CudaError and what `copy` throws.
template <class Copy>
void* fill_new(DeviceStreams& streams, std::size_t bytes, const Copy& copy) {
  const bool beside = streams.is_shared() || streams.is_working();
  const StreamRef stream = beside ? streams.copies() : streams.compute();
  void* const data = allocate_in(stream, bytes);
  Unfinished filling(stream);
  try {
    copy(stream, data);
    if (beside) streams.let_wait(streams.compute(), stream);
  } catch (...) {
    release_in(stream, data, bytes);
    throw;
  }
  filling.finished();
  return data;
}

/// Allocates memory and copies host memory to it: see fill_new().
inline void* upload_new(DeviceStreams& streams, const void* from, std::size_t bytes) {
  return fill_new(streams, bytes, [&](StreamRef stream, void* to) { send(streams, stream, to, from, bytes); });
}

/// Allocates memory and copies another GPU's memory to it: see fill_new() and fetch().
inline void* exchange_new(DeviceStreams& to, DeviceStreams& from, const void* from_data, std::size_t bytes) {
  return fill_new(to, bytes,
                  [&](StreamRef stream, void* to_data) { fetch(to, stream, to_data, from, from_data, bytes); });
}

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/transfer/transfer.ipp>
#endif
