// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_index.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/transfer/peer_check.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// How bytes are copied from one GPU to another. `from` and `to` are indices among the visible GPUs.
struct PeerLink {
  int from = 0;
  int to = 0;
  /// True if the GPUs copy directly; false if through page-locked host memory.
  bool direct = false;
  /// The reason why not directly; empty if direct.
  std::string why = {};
};

namespace detail {

enum class PeerState : int { unknown, direct, staged, undecided };

/// What is known of two GPUs, in both directions: both go through the same bridges, so neither is trusted if one fails.
/// Undecided if the check failed for a reason that says nothing about the way between them.
struct PeerPair {
  fanout::detail::Atomic<PeerState> state{PeerState::unknown};
  fanout::detail::Atomic<std::uint64_t> uses{0};  // while undecided
  std::string why = {};                           // guarded by PeerTable::checking
};

/// Each pair of GPUs, the smaller index first. Made at first use, and never destroyed.
struct PeerTable {
  struct Entry {
    fanout::detail::Atomic<PeerPair*> pair{nullptr};
  };
  Entry entries[most_gpus][most_gpus];
  fanout::detail::ForkSafeMutex checking;
};

[[gnu::visibility("default")]] inline fanout::detail::Atomic<PeerTable*> only_peer_table{nullptr};

FANOUT_INLINE PeerTable& peer_table();

FANOUT_INLINE PeerPair& peer_pair_of(const GpuState& one, const GpuState& other);

/// Checks a pair that is not decided, unless another thread has done so since its state was `seen`. `checking` must be
/// locked.
FANOUT_INLINE PeerState check_pair(PeerPair& pair, PeerState seen, GpuState& from, GpuState& to);

/// True if a pair that is not decided is to be checked at this use: at the 16th, the 32nd, the 64th, ...
inline bool check_at_use(std::uint64_t use) noexcept { return use >= 16 && (use & (use - 1)) == 0; }

}  // namespace detail

/// The link from one GPU to another. Checked at first use of a pair, then known until the process ends:
///
/// 1. If the hardware allows both GPUs to read each other's memory, access is enabled. It may have been enabled by
///    others before.
/// 2. Patterns of several sizes are copied both ways and compared on the host: on some machines direct copies write
///    other data and report success. If one arrives wrong, access is disabled again.
///
/// If the check fails for another reason, for example a lack of memory, each call checks the pair again. Until then,
/// copies of the pair go through the host.
///
/// The first check of a pair makes the contexts of both GPUs and takes some milliseconds; other threads wait for it. A
/// GPU is linked directly to itself. Throws InvalidDeviceId (`Invalid peer device id` for the second), DeviceLost and
/// CudaError.
FANOUT_INLINE PeerLink peer_link(GpuIndex from, GpuIndex to);

/// True if copies from one GPU to the other go directly. Checks and throws as peer_link(), but checks a pair whose
/// check failed only at its 16th, 32nd, 64th, ... use, since a check takes milliseconds.
FANOUT_INLINE bool peer_trusted(GpuIndex from, GpuIndex to);

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/transfer/peer_access.ipp>
#endif
