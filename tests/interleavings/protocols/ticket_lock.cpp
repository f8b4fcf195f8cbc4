// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/ticket_lock.hpp>

#include <cstdint>

#include "protocol.hpp"

namespace interleavings {

namespace {

void three_in_a_row() {
  fanout::detail::TicketLock turns;
  Plain<std::uint32_t> count(0);
  const auto body = [&](std::uint32_t ticket) {
    turns.await(ticket);
    check(count.get() == ticket, "the turns follow the tickets");
    count.set(ticket + 1);
    turns.pass(ticket);
  };
  const std::uint32_t first = turns.draw();
  const std::uint32_t second = turns.draw();
  const std::uint32_t third = turns.draw();
  run([&] { body(third); }, [&] { body(second); }, [&] { body(first); });
  check(count.get() == 3, "each thread has had its turn");
}

}  // namespace

Protocol ticket_lock() {
  using enum Fault::How;
  return {"ticket_lock",
          {{"three in a row", three_in_a_row}},
          {
              {"sync/ticket_lock.hpp", "std::uint32_t seen = passed_.load(MemoryOrder::acquire)", relaxed,
               "three in a row"},
              {"sync/ticket_lock.hpp", "passed_.compare_exchange_strong(seen, marked, MemoryOrder::acquire)", torn,
               "three in a row"},
              {"sync/ticket_lock.hpp", "passed_.exchange((ticket + 1) << 1U, MemoryOrder::acq_rel)", relaxed,
               "three in a row"},
              {"sync/ticket_lock.hpp", "passed_.exchange((ticket + 1) << 1U, MemoryOrder::acq_rel)", torn,
               "three in a row"},
              {"sync/ticket_lock.hpp", " unpark_all(passed_)", skipped, "three in a row"},
              {"sync/ticket_lock.hpp", " park(passed_, marked)", unchecked, "three in a row"},
          }};
}

}  // namespace interleavings
