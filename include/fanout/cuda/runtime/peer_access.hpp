// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>

#include <fanout/base/requirements.hpp>
#include <fanout/cuda/runtime/gpu_index.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/peer_check.hpp>
#include <fanout/cuda/runtime/status.hpp>
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

/// The link of each pair of GPUs. Made at first use, and never destroyed.
struct PeerTable {
  struct Entry {
    fanout::detail::Atomic<const PeerLink*> link{nullptr};
  };
  Entry entries[most_gpus][most_gpus];
  fanout::detail::ForkSafeMutex checking;
};

[[gnu::visibility("default")]] inline fanout::detail::Atomic<PeerTable*> only_peer_table{nullptr};

inline PeerTable& peer_table() {
  PeerTable* table = only_peer_table.load(fanout::detail::MemoryOrder::acquire);
  if (table == nullptr) {
    auto* made = new PeerTable;
    if (only_peer_table.compare_exchange_strong(table, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *table;
}

inline const PeerLink& peer_link_of(GpuState& from, GpuState& to) {
  PeerTable& table = peer_table();
  fanout::detail::Atomic<const PeerLink*>& link = table.entries[from.index()][to.index()].link;
  if (const PeerLink* known = link.load(fanout::detail::MemoryOrder::acquire)) return *known;
  const fanout::detail::ForkSafeLock checking(table.checking);
  if (const PeerLink* known = link.load(fanout::detail::MemoryOrder::acquire)) return *known;
  std::string why = &from == &to ? std::string() : connect_peers(from, to);
  // Both ways go through the same bridges, so neither is trusted if one fails.
  const bool direct = why.empty();
  if (&from != &to) {
    table.entries[to.index()][from.index()].link.store(new PeerLink{to.index(), from.index(), direct, why},
                                                       fanout::detail::MemoryOrder::release);
  }
  const auto* found = new PeerLink{from.index(), to.index(), direct, std::move(why)};
  link.store(found, fanout::detail::MemoryOrder::release);
  return *found;
}

}  // namespace detail

/// The link from one GPU to another. Checked at first use of a pair, then cached until the process ends:
///
/// 1. If the hardware allows both GPUs to read each other's memory, access is enabled. It may have been enabled by
///    others before.
/// 2. Patterns of several sizes are copied both ways and compared on the host: on some machines direct copies write
///    other data and report success. If one arrives wrong, access is disabled again.
///
/// The first check of a pair makes the contexts of both GPUs and takes some milliseconds; other threads wait for it. A
/// GPU is linked directly to itself. The result lives until the process ends. Throws InvalidDeviceId
/// (`Invalid peer device id` for the second), DeviceLost and CudaError.
inline const PeerLink& peer_link(GpuIndex from, GpuIndex to) {
  detail::GpuState& gpu = from.gpu();
  return detail::peer_link_of(gpu, detail::gpu_at(to.get_peer()));
}

/// True if bytes may be copied directly: peer_link(from, to).direct. Checks and throws as peer_link().
inline bool peer_trusted(GpuIndex from, GpuIndex to) { return peer_link(from, to).direct; }

}}}  // namespace fanout::v0::cuda
