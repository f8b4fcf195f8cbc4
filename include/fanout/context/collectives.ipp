// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/context/collectives.hpp>

#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/text.hpp>
#include <fanout/collective/rendezvous_rank.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void ShardRendezvous::leave(std::size_t shard, const std::exception_ptr& why) noexcept {
  rendezvous_.leave(shard, why);
  if (const CallRendezvous::Way& way = call_.way(); way.processes != nullptr) {
    way.processes->leave(way.first_shard + shard, why);
  }
}

std::exception_ptr ShardRendezvous::failure(std::size_t shard) const noexcept {
  const backend::TransportRanks* const direct = this->direct();
  if (direct == nullptr) return nullptr;
  if (std::exception_ptr own = direct->failure(shard)) return own;
  const CallRendezvous::Way& way = call_.way();
  for (std::size_t other = 0; other < rendezvous_.size(); ++other) {
    if (const std::exception_ptr why = direct->failure(other)) return released_by(way.first_shard + other, why);
  }
  return way.processes == nullptr ? nullptr : way.processes->release();
}

void ShardRendezvous::find_direct(std::size_t shard, backend::Collective* calls, std::size_t count) {
  const backend::CollectiveTransport* const transport = call_.way().transport;
  if (transport == nullptr) return;
  backend::TransportRanks* direct = nullptr;
  if (call_.way().processes != nullptr) {
    direct = call_.way().processes->direct();
  } else if (rendezvous_.size() > 1) {
    const ForkSafeLock opening(opening_);
    if (!opened_) {
      const CallRendezvous::Way& way = call_.way();
      const InlineArray<DeviceId> devices(rendezvous_.size(),
                                          [&way](std::size_t i) { return way.devices[(*way.plan)[i].device]; });
      direct_.store(transport->open({devices.data(), rendezvous_.size()}), MemoryOrder::release);
      opened_ = true;
      rendezvous_.run_direct_by(direct_.load(MemoryOrder::relaxed));
    }
    direct = direct_.load(MemoryOrder::relaxed);
  }
  for (std::size_t i = 0; i < count && direct != nullptr; ++i) {
    calls[i].direct = direct->takes(shard, calls[i]);
  }
}

void ShardRendezvous::meet(std::size_t shard, backend::Collective* calls, std::size_t count) {
  if (const CallRendezvous::Way& way = call_.way(); way.processes != nullptr) {
    const auto start = [](void* own) noexcept { static_cast<ShardRendezvous*>(own)->start_others(); };
    return way.processes->meet(way.first_shard + shard, calls, count, {.start = start, .of = this});
  }
  const bool all_run = all_run_.load(MemoryOrder::relaxed);
  rendezvous_.meet(shard, calls, count, all_run ? Clock::never : patience, [this]() noexcept { start_others(); });
}

std::exception_ptr ShardRendezvous::released_by(std::size_t rank, const std::exception_ptr& why) noexcept {
  try {
    RendezvousRank failed;
    failed.retain(why);
    throw CommunicatorAbandoned(explain({.what = "a collective between devices was aborted",
                                         .found = Text() << "rank " << rank << " failed: " << failed.why}),
                                rank);
  } catch (...) {  // also what has no memory
    return std::current_exception();
  }
}

}}}  // namespace fanout::v0::detail
namespace fanout { inline namespace v0 {

void ShardCommunicator::run(backend::Collective* calls, std::size_t count) {
  rendezvous_->find_direct(shard_, calls, count);
  detail::StagedCalls staged(calls, count, rank_, size_);
  rendezvous_->meet(shard_, calls, count);
  staged.finish();
}

}}  // namespace fanout::v0
