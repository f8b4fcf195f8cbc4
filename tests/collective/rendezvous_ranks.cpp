// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
//
// What a HostRendezvous does with its ranks is tested in host_communicator.cpp; here, what only its parts show.
#include <doctest/doctest.h>

#include <cstdint>

#include <fanout/collective/rendezvous_ranks.hpp>

namespace {

struct OpenRanks : fanout::detail::RendezvousRanks {
  using RendezvousRanks::RendezvousRanks;
  std::uint32_t turn() const { return turn_.load(); }
};

}  // namespace

// A rank reads the turn, unlocks the mutex, and only then sleeps. Without a new turn it would miss a wake-up between
// the two.
TEST_CASE("every wake-up advances the turn, so that a rank about to sleep does not miss it") {
  OpenRanks ranks(2);
  const std::uint32_t first = ranks.turn();
  ranks.leave(1, nullptr);
  const std::uint32_t second = ranks.turn();
  CHECK(second != first);
  ranks.break_off("no more");
  CHECK(ranks.turn() != second);
}
