// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/device/mailbox.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <thread>
#include <vector>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::fork_epoch;
using fanout::Mailbox;
using fanout::Ticks;

namespace {

struct Calls {
  std::vector<std::size_t> shards;  // plain: who has the device is alone
  static void run(const void* self, std::size_t shard) noexcept {
    const_cast<Calls*>(static_cast<const Calls*>(self))->shards.push_back(shard);
  }
  Mailbox::Request request(std::size_t shard) const {
    return {.run = &run, .body = this, .shard = shard, .rules = nullptr, .takes = 0, .woken_at = 0};
  }
};

/// What a device's thread does with one request, if there is one.
bool serve(Mailbox& mailbox) {
  const Mailbox::Request* request = mailbox.begin();
  if (request == nullptr) return false;
  request->run(request->body, request->shard);
  mailbox.answer();
  return true;
}

}  // namespace

TEST_CASE("one at a time has the device") {
  Mailbox mailbox;
  CHECK(mailbox.try_take());
  CHECK_FALSE(mailbox.try_take());
  mailbox.give();
  mailbox.take();
  CHECK_FALSE(mailbox.try_take());
  mailbox.give();
  CHECK(mailbox.try_take());
  mailbox.give();
}

TEST_CASE("who waits for the device sleeps until it is given back") {
  Mailbox mailbox;
  mailbox.take();
  std::vector<std::thread> all;
  int had = 0;  // plain
  std::atomic<int> first{0};
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([&] {
      first = fanout_test::this_thread();
      const fanout::HeldDevice held(mailbox);
      ++had;
    });
  }
  fanout_test::until_asleep(first);
  CHECK(had == 0);
  mailbox.give();
  for (std::thread& thread : all) thread.join();
  CHECK(had == 3);
}

TEST_CASE("a request that nobody has begun can be taken back, once, and who does has the device") {
  Mailbox mailbox;
  Calls calls;
  const Mailbox::Ticket ticket = mailbox.post(calls.request(7));
  REQUIRE(ticket != 0);
  CHECK((ticket & Mailbox::revocable) != 0);
  CHECK(mailbox.has_request());
  CHECK_FALSE(mailbox.is_answered(ticket));
  CHECK_FALSE(mailbox.try_take());
  CHECK(mailbox.post(calls.request(8)) == 0);
  CHECK(mailbox.take_back(ticket));
  CHECK_FALSE(mailbox.take_back(ticket));
  CHECK_FALSE(mailbox.has_request());
  CHECK_FALSE(mailbox.try_take());
  mailbox.run_taken_back();
  CHECK(calls.shards == std::vector<std::size_t>{7});
  CHECK(mailbox.is_answered(ticket));
  CHECK(mailbox.await(ticket, 0, fork_epoch()));
  CHECK(mailbox.try_take());
  mailbox.give();
}

TEST_CASE("a request is begun once, and its answer frees the device") {
  Mailbox mailbox;
  Calls calls;
  CHECK_FALSE(serve(mailbox));
  const Mailbox::Ticket ticket = mailbox.post(calls.request(1));
  const Mailbox::Request* const request = mailbox.begin();
  REQUIRE(request != nullptr);
  CHECK_FALSE(mailbox.take_back(ticket));
  CHECK_FALSE(mailbox.is_answered(ticket));
  CHECK(mailbox.post(calls.request(9)) == 0);  // waits a moment, since the answer might be on its way
  request->run(request->body, request->shard);
  mailbox.answer();
  CHECK(mailbox.is_answered(ticket));
  const Mailbox::Ticket next = mailbox.post(calls.request(2));
  CHECK(next != ticket);
  CHECK(mailbox.is_answered(ticket));
  CHECK_FALSE(mailbox.is_answered(next));
  CHECK(serve(mailbox));
  CHECK(calls.shards == std::vector<std::size_t>{1, 2});
}

TEST_CASE(
    "what is posted to a thread that attends is not taken back, and the thread goes on attending until it stops") {
  Mailbox mailbox;
  Calls calls;
  mailbox.attend();
  const Mailbox::Ticket ticket = mailbox.post(calls.request(3));
  CHECK((ticket & Mailbox::revocable) == 0);
  CHECK_FALSE(mailbox.take_back(ticket));
  CHECK_FALSE(mailbox.stop_attending());
  CHECK(serve(mailbox));
  CHECK((mailbox.post(calls.request(4)) & Mailbox::revocable) == 0);
  CHECK(serve(mailbox));
  CHECK(mailbox.stop_attending());
  const Mailbox::Ticket again = mailbox.post(calls.request(5));
  CHECK((again & Mailbox::revocable) != 0);
  mailbox.attend();  // what was posted before can be taken back as before
  CHECK(mailbox.take_back(again));
  CHECK(mailbox.stop_attending());
  mailbox.run_taken_back();
  CHECK(calls.shards == std::vector<std::size_t>{3, 4, 5});
}

TEST_CASE("a request that is late ends a wait with a deadline") {
  Mailbox mailbox;
  Calls calls;
  const Mailbox::Ticket ticket = mailbox.post(calls.request(0));
  CHECK_FALSE(mailbox.await(ticket, 100, fork_epoch(), fanout::Clock::now() - 1));
  const fanout::Clock::Time until = fanout::Clock::now() + 3'000'000;
  CHECK_FALSE(mailbox.await(ticket, Ticks::forever, fork_epoch(), until));
  CHECK(fanout::Clock::now() >= until);
  CHECK(serve(mailbox));
  CHECK(mailbox.await(ticket, 0, fork_epoch(), 1));
}

TEST_CASE("posters, takers and the thread share one device") {
  Mailbox mailbox;
  long runs = 0;  // plain
  struct Count {
    static void run(const void* counter, std::size_t) noexcept {
      ++*const_cast<long*>(static_cast<const long*>(counter));
    }
  };
  std::atomic<bool> end{false};
  std::thread thread([&] {
    for (int round = 0; !end; ++round) {
      mailbox.attend();
      for (int i = 0; i < 50; ++i) serve(mailbox);
      while (!mailbox.stop_attending()) serve(mailbox);
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
          const fanout::HeldDevice held(mailbox);
          ++runs;
          continue;
        }
        Mailbox::Ticket ticket = 0;
        while ((ticket = mailbox.post({&Count::run, &runs, 0, nullptr, 0, 0})) == 0) std::this_thread::yield();
        if (i % 3 == 0 && mailbox.take_back(ticket)) {
          mailbox.run_taken_back();
        } else if (!mailbox.await(ticket, i % 2 == 0 ? 0 : 10'000, fork_epoch())) {
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

TEST_CASE("in the child of a fork the device is free, whoever had it, and what was posted is the parent's") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  Calls calls;
  for (const bool posted : {false, true}) {
    Mailbox mailbox;
    mailbox.attend();
    const std::uint32_t epoch = fork_epoch();
    const Mailbox::Ticket ticket = posted ? mailbox.post(calls.request(1)) : 0;
    if (!posted) mailbox.take();
    CHECK(fanout_test::in_child([&] {
            if (posted && mailbox.await(ticket, 10, epoch)) return 1;
            if (!mailbox.try_take()) return 2;
            mailbox.give();
            if (mailbox.begin() != nullptr) return 3;
            const Mailbox::Ticket own = mailbox.post(calls.request(2));
            if (own == ticket || (own & Mailbox::revocable) == 0) return 4;
            return mailbox.take_back(own) ? 0 : 5;
          }) == 0);
  }
}
