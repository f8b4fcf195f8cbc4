// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/transfer/peer_access.hpp>

#include <utility>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

PeerTable& peer_table() {
  PeerTable* table = only_peer_table.load(fanout::detail::MemoryOrder::acquire);
  if (table == nullptr) {
    auto* made = new PeerTable;
    if (only_peer_table.compare_exchange_strong(table, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *table;
}

PeerPair& peer_pair_of(const GpuState& one, const GpuState& other) {
  const bool ordered = one.index() < other.index();
  fanout::detail::Atomic<PeerPair*>& entry =
      peer_table().entries[(ordered ? one : other).index()][(ordered ? other : one).index()].pair;
  PeerPair* pair = entry.load(fanout::detail::MemoryOrder::acquire);
  if (pair == nullptr) {
    auto* made = new PeerPair;
    if (entry.compare_exchange_strong(pair, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *pair;
}

PeerState check_pair(PeerPair& pair, PeerState seen, GpuState& from, GpuState& to) {
  const PeerState now = pair.state.load(fanout::detail::MemoryOrder::acquire);
  if (now != seen || now == PeerState::direct || now == PeerState::staged) return now;
  PeerFinding found = &from == &to ? PeerFinding{} : connect_peers(from, to);
  const PeerState state = found.direct() ? PeerState::direct : found.final ? PeerState::staged : PeerState::undecided;
  pair.why = std::move(found.why);
  pair.state.store(state, fanout::detail::MemoryOrder::release);
  return state;
}

}}}}  // namespace fanout::v0::cuda::detail
namespace fanout { inline namespace v0 { namespace cuda {

PeerLink peer_link(GpuIndex from, GpuIndex to) {
  detail::GpuState& gpu = from.gpu();
  detail::GpuState& peer = detail::gpu_at(to.get_peer());
  detail::PeerPair& pair = detail::peer_pair_of(gpu, peer);
  const detail::PeerState seen = pair.state.load(fanout::detail::MemoryOrder::acquire);
  const fanout::detail::ForkSafeLock checking(detail::peer_table().checking);
  const bool direct = detail::check_pair(pair, seen, gpu, peer) == detail::PeerState::direct;
  return {gpu.index(), peer.index(), direct, pair.why};
}

bool peer_trusted(GpuIndex from, GpuIndex to) {
  detail::GpuState& gpu = from.gpu();
  detail::GpuState& peer = detail::gpu_at(to.get_peer());
  detail::PeerPair& pair = detail::peer_pair_of(gpu, peer);
  const detail::PeerState seen = pair.state.load(fanout::detail::MemoryOrder::acquire);
  if (seen == detail::PeerState::direct) return true;
  if (seen == detail::PeerState::staged) return false;
  if (seen == detail::PeerState::undecided) {
    if (!detail::check_at_use(pair.uses.fetch_add(1, fanout::detail::MemoryOrder::relaxed) + 1)) return false;
  }
  const fanout::detail::ForkSafeLock checking(detail::peer_table().checking);
  return detail::check_pair(pair, seen, gpu, peer) == detail::PeerState::direct;
}

}}}  // namespace fanout::v0::cuda
