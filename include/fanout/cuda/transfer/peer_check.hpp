// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/page_locked.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// What a check of two GPUs found.
struct PeerFinding {
  /// Empty if copies go directly, else the reason why not.
  std::string why = {};
  /// False if the reason says nothing about the way between the GPUs, for example a lack of memory.
  bool final = true;

  bool direct() const noexcept { return why.empty(); }
};

/// True if the status says that two GPUs do not copy directly; other errors may be gone at the next try.
inline bool denies_peers(cudaError_t status) noexcept {
  return status == cudaErrorPeerAccessUnsupported || status == cudaErrorTooManyPeers || status == cudaErrorNotSupported;
}

/// Access of a GPU to a peer's memory and to fanout's pool there. Stays open until close() is called.
class PeerAccess {
 public:
  PeerAccess(GpuState& gpu, GpuState& peer) noexcept : gpu_(gpu), peer_(peer) {}

  /// Enables access, or returns the reason why not. Throws DeviceLost and CudaError.
  FANOUT_INLINE PeerFinding open();

  /// Undoes what open() did.
  FANOUT_INLINE void close() noexcept;

 private:
  FANOUT_INLINE cudaError_t set_pool_access(cudaMemAccessFlags flags) noexcept;

  GpuState& gpu_;
  GpuState& peer_;
  bool opened_ = false;
};

/// GPU memory for the check of a pair.
class CheckedMemory {
 public:
  CheckedMemory(StreamRef stream, std::size_t bytes)
      : stream_(stream), bytes_(bytes), data_(allocate_in(stream, bytes)) {}
  CheckedMemory(const CheckedMemory&) = delete;
  CheckedMemory& operator=(const CheckedMemory&) = delete;
  ~CheckedMemory() { release_in(stream_, data_, bytes_); }
  void* data() const noexcept { return data_; }

 private:
  StreamRef stream_;
  std::size_t bytes_;
  void* data_;
};

/// Page-locked host memory for the check of a pair.
class CheckedHostMemory {
 public:
  CheckedHostMemory(GpuState& gpu, std::size_t bytes)
      : gpu_(gpu), data_(static_cast<unsigned char*>(allocate_page_locked(bytes, gpu))) {}
  CheckedHostMemory(const CheckedHostMemory&) = delete;
  CheckedHostMemory& operator=(const CheckedHostMemory&) = delete;
  ~CheckedHostMemory() { release_page_locked(data_, gpu_); }
  unsigned char* data() const noexcept { return data_; }

 private:
  GpuState& gpu_;
  unsigned char* data_;
};

/// The sizes of the test copies: a few bytes, a page, and two sizes that are no multiple of a page. The largest is
/// above the size at which GPUs change the way they copy.
inline constexpr std::size_t checked_sizes[] = {5, 4096, 100'003, (std::size_t{2} << 20) + 1};

/// The test byte of a position. It differs between positions, sizes and pairs, so that data of an earlier copy is not
/// mistaken for this one.
FANOUT_INLINE unsigned char checked_byte(std::size_t position, std::size_t size, int from, int to) noexcept;

/// Copies from one GPU to another and compares. Throws OutOfMemory, DeviceLost and CudaError.
FANOUT_INLINE PeerFinding check_copies(GpuState& from, GpuState& to);

/// Enables direct copies between two GPUs if copies arrive intact both ways. Else nothing has changed. Throws
/// DeviceLost.
FANOUT_INLINE PeerFinding connect_peers(GpuState& one, GpuState& other);

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/transfer/peer_check.ipp>
#endif
