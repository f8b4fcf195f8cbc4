// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/futex.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <sys/mman.h>

#include "support/asleep.hpp"

TEST_CASE("park returns at once if the word holds something else") {
  const fanout::detail::Atomic<std::uint32_t> word{7};
  fanout::detail::park(word, 6);
  CHECK(word.load() == 7);
}

TEST_CASE("park_until returns at its time, at once if that is past, and when it is woken") {
  fanout::detail::Atomic<std::uint32_t> word{7};
  fanout::detail::park_until(word, 7, 1);
  const fanout::detail::Clock::Time until = fanout::detail::Clock::now() + 3'000'000;
  while (fanout::detail::Clock::now() < until) fanout::detail::park_until(word, 7, until);
  std::atomic<int> sleeper{0};
  std::thread thread([&] {
    sleeper = fanout_test::this_thread();
    while (word.load() == 7) fanout::detail::park_until(word, 7, fanout::detail::Clock::never);
  });
  fanout_test::until_asleep(sleeper);
  word.store(8);
  fanout::detail::unpark_all(word);
  thread.join();
}

TEST_CASE("unpark_all wakes every thread that sleeps on the word") {
  fanout::detail::Atomic<std::uint32_t> word{0};
  std::array<std::atomic<int>, 4> sleepers{};
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (auto& sleeper : sleepers) {
    threads.emplace_back([&] {
      sleeper = fanout_test::this_thread();
      while (word.load() == 0) fanout::detail::park(word, 0);
      ++woken;
    });
  }
  for (const auto& sleeper : sleepers) fanout_test::until_asleep(sleeper);
  CHECK(woken == 0);
  word.store(1);
  fanout::detail::unpark_all(word);
  for (std::thread& thread : threads) thread.join();
  CHECK(woken == 4);
}

TEST_CASE("unpark_all may be given a word whose memory is gone") {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  auto& word = *new (page) fanout::detail::Atomic<std::uint32_t>(0);
  ::munmap(page, 4096);
  fanout::detail::unpark_all(word);
}
