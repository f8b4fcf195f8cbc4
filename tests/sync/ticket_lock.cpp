// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <fanout/sync/ticket_lock.hpp>

#include "support/asleep.hpp"

TEST_CASE("threads go in the order of their tickets, one at a time") {
  fanout::detail::TicketLock turns;
  std::vector<std::uint32_t> tickets;
  for (int i = 0; i < 8; ++i) tickets.push_back(turns.draw());
  CHECK(turns.drawn() == 8);
  std::vector<std::uint32_t> order;  // plain: the turns guard it
  std::vector<std::thread> threads;
  for (std::size_t i = tickets.size(); i > 0; --i) {
    threads.emplace_back([&, ticket = tickets[i - 1]] {
      turns.await(ticket);
      order.push_back(ticket);
      turns.pass(ticket);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(order == tickets);
  turns.await(turns.drawn());  // all have passed
}

TEST_CASE("waiting threads sleep, and a pass wakes only the next one") {
  fanout::detail::TicketLock turns;
  const std::uint32_t first = turns.draw();
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  std::atomic<int> numbers[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i, ticket = turns.draw()] {
      numbers[i] = fanout_test::this_thread();
      turns.await(ticket);
      CHECK(passed++ == i);
      turns.pass(ticket);
    });
  }
  for (const auto& number : numbers) fanout_test::until_asleep(number);
  CHECK(passed == 0);
  turns.await(first);
  turns.pass(first);
  for (std::thread& thread : threads) thread.join();
  CHECK(passed == 2);
}

TEST_CASE("forget drops all earlier tickets") {
  fanout::detail::TicketLock turns;
  turns.await(0);
  (void)turns.draw();
  (void)turns.draw();
  turns.forget();
  turns.await(turns.draw());
}
