// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>

#include <fanout/base/annotate.hpp>
#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/card_index.hpp>
#include <fanout/cuda/runtime/peer_check.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// How bytes get from one card to another.
struct PeerLink {
  int from = 0;
  int to = 0;
  /// Whether the cards copy between themselves, or through page-locked memory of the host.
  bool direct = false;
  /// Why not directly; empty if they do.
  std::string why = {};
};

namespace detail {

/// What was found of each pair of cards. Made at first use, and never destroyed.
struct PeerTable {
  struct Entry {
    fanout::detail::Atomic<const PeerLink*> link{nullptr};
  };
  Entry entries[most_cards][most_cards];
  fanout::detail::ForkSafeMutex checking;
};

FANOUT_EXPORT inline fanout::detail::Atomic<PeerTable*> only_peer_table{nullptr};

inline PeerTable& peer_table() {
  PeerTable* table = only_peer_table.load(fanout::detail::MemoryOrder::acquire);
  if (table == nullptr) {
    auto* made = new PeerTable;
    if (only_peer_table.compare_exchange_strong(table, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *table;
}

inline const PeerLink& peer_link_of(Card& from, Card& to) {
  PeerTable& table = peer_table();
  fanout::detail::Atomic<const PeerLink*>& link = table.entries[from.index()][to.index()].link;
  if (const PeerLink* known = link.load(fanout::detail::MemoryOrder::acquire)) return *known;
  const fanout::detail::ForkSafeLock checking(table.checking);
  if (const PeerLink* known = link.load(fanout::detail::MemoryOrder::acquire)) return *known;
  std::string why = &from == &to ? std::string() : connect_peers(from, to);
  // What one way cannot be trusted with, the other way is not: both go through the same bridges.
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

/// How bytes get from one card to another. Found out when first asked for a pair, then kept until the process ends:
///
/// 1. If the hardware lets both cards read each other's memory, that is enabled; where somebody else had enabled it
///    already, that is fine.
/// 2. Patterns of several sizes are copied both ways, and compared on the host, since there are machines where direct
///    copies write something else and report success. If one arrives wrong, the access is disabled again.
///
/// Makes the contexts of both cards and takes some milliseconds; the first to ask does it, others wait meanwhile. A
/// card and itself are linked directly. Throws InvalidDeviceId (`Invalid peer device id` for the second), DeviceLost
/// and CudaError.
inline const PeerLink& peer_link(CardIndex from, CardIndex to) {
  detail::Card& card = from.card();
  return detail::peer_link_of(card, detail::card_at(to.get_peer()));
}

/// Whether bytes may be copied directly from one card to another: peer_link(from, to).direct.
inline bool peer_trusted(CardIndex from, CardIndex to) { return peer_link(from, to).direct; }

}}}  // namespace fanout::v0::cuda
