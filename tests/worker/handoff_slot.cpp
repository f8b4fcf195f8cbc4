// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/handoff_slot.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <thread>
#include <vector>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::detail::fork_epoch;
using fanout::detail::HandoffSlot;
using fanout::detail::Ticks;

namespace {

struct Calls {
  std::vector<std::size_t> shards;  // plain: who has the device is alone
  static fanout::detail::Atomic<bool>* run(const void* self, std::size_t shard) noexcept {
    const_cast<Calls*>(static_cast<const Calls*>(self))->shards.push_back(shard);
    return nullptr;
  }
  HandoffSlot::Request request(std::size_t shard) const {
    return {.run = &run, .body = this, .shard = shard, .rules = nullptr, .takes = 0, .woken_at = 0};
  }
};

/// What a device's thread does with one request, if there is one.
bool serve(HandoffSlot& handoff) {
  const HandoffSlot::Request* request = handoff.begin();
  if (request == nullptr) return false;
  handoff.complete(request->run(request->body, request->shard));
  return true;
}

}  // namespace

TEST_CASE("one thread at a time holds the device") {
  HandoffSlot handoff;
  CHECK(handoff.try_lock());
  CHECK_FALSE(handoff.try_lock());
  handoff.unlock();
  handoff.lock();
  CHECK_FALSE(handoff.try_lock());
  handoff.unlock();
  CHECK(handoff.try_lock());
  handoff.unlock();
}

TEST_CASE("a thread that waits for the device sleeps until it is unlocked") {
  HandoffSlot handoff;
  handoff.lock();
  std::vector<std::thread> all;
  int had = 0;  // plain
  std::atomic<int> first{0};
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([&] {
      first = fanout_test::this_thread();
      const fanout::detail::DeviceLock held(handoff);
      ++had;
    });
  }
  fanout_test::until_asleep(first);
  CHECK(had == 0);
  handoff.unlock();
  for (std::thread& thread : all) thread.join();
  CHECK(had == 3);
}

TEST_CASE("a request that has not started can be taken back once, which locks the device") {
  HandoffSlot handoff;
  Calls calls;
  const HandoffSlot::Ticket ticket = handoff.post(calls.request(7));
  REQUIRE(ticket != 0);
  CHECK((ticket & HandoffSlot::revocable) != 0);
  CHECK(handoff.has_request());
  CHECK_FALSE(handoff.is_complete(ticket));
  CHECK_FALSE(handoff.try_lock());
  CHECK(handoff.post(calls.request(8)) == 0);
  CHECK(handoff.take_back(ticket));
  CHECK_FALSE(handoff.take_back(ticket));
  CHECK_FALSE(handoff.has_request());
  CHECK_FALSE(handoff.try_lock());
  handoff.run_taken_back();
  CHECK(calls.shards == std::vector<std::size_t>{7});
  CHECK(handoff.is_complete(ticket));
  CHECK(handoff.await(ticket, 0, fork_epoch()));
  CHECK(handoff.try_lock());
  handoff.unlock();
}

TEST_CASE("a request is started once, and its completion unlocks the device") {
  HandoffSlot handoff;
  Calls calls;
  CHECK_FALSE(serve(handoff));
  const HandoffSlot::Ticket ticket = handoff.post(calls.request(1));
  const HandoffSlot::Request* const request = handoff.begin();
  REQUIRE(request != nullptr);
  CHECK_FALSE(handoff.take_back(ticket));
  CHECK_FALSE(handoff.is_complete(ticket));
  CHECK(handoff.post(calls.request(9)) == 0);  // waits a moment, since the answer might be on its way
  handoff.complete(request->run(request->body, request->shard));
  CHECK(handoff.is_complete(ticket));
  const HandoffSlot::Ticket next = handoff.post(calls.request(2));
  CHECK(next != ticket);
  CHECK(handoff.is_complete(ticket));
  CHECK_FALSE(handoff.is_complete(next));
  CHECK(serve(handoff));
  CHECK(calls.shards == std::vector<std::size_t>{1, 2});
}

TEST_CASE("a request to a polling thread cannot be taken back, and the thread polls until it stops") {
  HandoffSlot handoff;
  Calls calls;
  handoff.start_polling();
  const HandoffSlot::Ticket ticket = handoff.post(calls.request(3));
  CHECK((ticket & HandoffSlot::revocable) == 0);
  CHECK_FALSE(handoff.take_back(ticket));
  CHECK_FALSE(handoff.stop_polling());
  CHECK(serve(handoff));
  CHECK((handoff.post(calls.request(4)) & HandoffSlot::revocable) == 0);
  CHECK(serve(handoff));
  CHECK(handoff.stop_polling());
  const HandoffSlot::Ticket again = handoff.post(calls.request(5));
  CHECK((again & HandoffSlot::revocable) != 0);
  handoff.start_polling();  // what was posted before can be taken back as before
  CHECK(handoff.take_back(again));
  CHECK(handoff.stop_polling());
  handoff.run_taken_back();
  CHECK(calls.shards == std::vector<std::size_t>{3, 4, 5});
}

TEST_CASE("a request that is late ends a wait with a deadline") {
  HandoffSlot handoff;
  Calls calls;
  const HandoffSlot::Ticket ticket = handoff.post(calls.request(0));
  CHECK_FALSE(handoff.await(ticket, 100, fork_epoch(), fanout::detail::Clock::now() - 1));
  const fanout::detail::Clock::Time until = fanout::detail::Clock::now() + 3'000'000;
  CHECK_FALSE(handoff.await(ticket, Ticks::forever, fork_epoch(), until));
  CHECK(fanout::detail::Clock::now() >= until);
  CHECK(serve(handoff));
  CHECK(handoff.await(ticket, 0, fork_epoch(), 1));
}

TEST_CASE("posters, takers and the thread share one device") {
  HandoffSlot handoff;
  long runs = 0;  // plain
  struct Count {
    static fanout::detail::Atomic<bool>* run(const void* counter, std::size_t) noexcept {
      ++*const_cast<long*>(static_cast<const long*>(counter));
      return nullptr;
    }
  };
  std::atomic<bool> end{false};
  std::thread thread([&] {
    for (int round = 0; !end; ++round) {
      handoff.start_polling();
      for (int i = 0; i < 50; ++i) serve(handoff);
      while (!handoff.stop_polling()) serve(handoff);
      if (round % 8 == 0) std::this_thread::yield();
    }
  });
  constexpr int each = 3000;
  std::atomic<int> unanswered{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        if (t == 0) {
          const fanout::detail::DeviceLock held(handoff);
          ++runs;
          continue;
        }
        HandoffSlot::Ticket ticket = 0;
        while ((ticket = handoff.post({&Count::run, &runs, 0, nullptr, 0, 0})) == 0) std::this_thread::yield();
        if (i % 3 == 0 && handoff.take_back(ticket)) {
          handoff.run_taken_back();
        } else if (!handoff.await(ticket, i % 2 == 0 ? 0 : 10'000, fork_epoch())) {
          ++unanswered;
        }
      }
    });
  }
  for (std::thread& other : all) other.join();
  end = true;
  thread.join();
  CHECK(unanswered == 0);
  CHECK(runs == 3 * each);
}

TEST_CASE("in the child of a fork the device is free, and posted requests are the parent's") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  Calls calls;
  for (const bool posted : {false, true}) {
    HandoffSlot handoff;
    handoff.start_polling();
    const std::uint32_t epoch = fork_epoch();
    const HandoffSlot::Ticket ticket = posted ? handoff.post(calls.request(1)) : 0;
    if (!posted) handoff.lock();
    CHECK(fanout_test::in_child([&] {
            if (posted && handoff.await(ticket, 10, epoch)) return 1;
            if (!handoff.try_lock()) return 2;
            handoff.unlock();
            if (handoff.begin() != nullptr) return 3;
            const HandoffSlot::Ticket own = handoff.post(calls.request(2));
            if (own == ticket || (own & HandoffSlot::revocable) == 0) return 4;
            return handoff.take_back(own) ? 0 : 5;
          }) == 0);
  }
}

TEST_CASE("no ticket is 0, also when their numbers begin again") {
  Calls calls;
  HandoffSlot handoff;
  constexpr std::uint64_t all_numbers = (std::uint64_t{1} << 47U) - 32;
  auto& word = reinterpret_cast<std::uint64_t&>(handoff);  // the first member of a class of standard layout
  word |= all_numbers;
  std::uint64_t before = word;
  for (int i = 0; i < 3; ++i) {
    const HandoffSlot::Ticket ticket = handoff.post(calls.request(0));
    CHECK(ticket > 31);  // what is lower means something else to ShardTask
    CHECK(handoff.take_back(ticket));
    handoff.unlock();
    CHECK(word != before);
    before = word;
  }
}

namespace {

/// A request whose end is told by a flag.
struct Flagged {
  fanout::detail::Atomic<bool> ended{false};
  bool told_too_early = false;
  static fanout::detail::Atomic<bool>* run(const void* self, std::size_t) noexcept {
    auto& flagged = *const_cast<Flagged*>(static_cast<const Flagged*>(self));
    flagged.told_too_early = flagged.ended.load();
    return &flagged.ended;
  }
};

}  // namespace

TEST_CASE("a request is complete after it has returned, whichever thread ran it") {
  for (const bool back : {false, true}) {
    HandoffSlot handoff;
    Flagged flagged;
    if (!back) handoff.start_polling();
    const HandoffSlot::Ticket ticket = handoff.post({&Flagged::run, &flagged, 0, nullptr, 0, 0});
    REQUIRE(ticket != 0);
    if (back) {
      CHECK(handoff.take_back(ticket));
      handoff.run_taken_back();
    } else {
      CHECK(serve(handoff));
    }
    CHECK(flagged.ended.load());
    CHECK_FALSE(flagged.told_too_early);
  }
}

TEST_CASE("the device's thread waits for a poster that is writing its request") {
  // The word says for a moment that a request is written. Another thread ends that, as the poster would.
  HandoffSlot handoff;
  handoff.start_polling();
  auto& word = reinterpret_cast<fanout::detail::Atomic<std::uint64_t>&>(handoff);
  const std::uint64_t attended = word.load();
  constexpr std::uint64_t claimed = 2;
  constexpr std::uint64_t running = 4;
  word.store(attended + claimed);
  std::thread poster([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    word.store(attended + running);
  });
  CHECK_FALSE(handoff.stop_polling());
  CHECK(handoff.has_request());  // so it did not come back meanwhile, to be called again and again
  poster.join();
  handoff.complete(nullptr);
  CHECK(handoff.stop_polling());
}

TEST_CASE("a request that is taken back runs under the floating-point modes with which it was posted") {
  HandoffSlot handoff;
  const auto note_mode = [](const void* seen, std::size_t) noexcept -> fanout::detail::Atomic<bool>* {
    *static_cast<int*>(const_cast<void*>(seen)) = std::fegetround();
    return nullptr;
  };
  int mode = -1;
  std::fesetround(FE_UPWARD);
  const HandoffSlot::Ticket ticket = handoff.post({note_mode, &mode, 0, nullptr, 0, 0});
  std::fesetround(FE_TONEAREST);
  REQUIRE(handoff.take_back(ticket));
  handoff.run_taken_back();
  CHECK(mode == FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}
