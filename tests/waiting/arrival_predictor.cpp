// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/waiting/arrival_predictor.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <random>

using fanout::detail::ArrivalPredictor;
using fanout::detail::Clock;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Of how many of the next ones the window holds, after some to learn from.
int predicted(std::int64_t gap, double jitter, int of) {
  ArrivalPredictor arrivals;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> off(1 - jitter, 1 + jitter);
  Clock::Time now = 1;
  int hits = 0;
  for (int i = 0; i < 20 + of; ++i) {
    const auto next = now + static_cast<std::int64_t>(static_cast<double>(gap) * off(random));
    if (i >= 20 && arrivals.are_regular()) {
      const ArrivalPredictor::Window window = arrivals.next(now);
      if (window.begin <= next && next < window.end) ++hits;
    }
    arrivals.note(now, next);
    now = next;
  }
  return hits;
}

/// How many of 120 pieces of work the window held, which take up to 3 ms; the i-th comes at `next(i, idle_since)`.
template <class Next>
int foreseen_of_120(Next next) {
  ArrivalPredictor arrivals;
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> takes(0, 3 * ms);
  Clock::Time idle_since = 1;
  int hits = 0;
  for (int i = 1; i <= 120; ++i) {
    const Clock::Time came = next(i, idle_since);
    const ArrivalPredictor::Window window = arrivals.next(idle_since);
    if (arrivals.are_regular() && window.begin <= came && came < window.end) ++hits;
    arrivals.note(idle_since, came);
    idle_since = came + takes(random);
  }
  return hits;
}

}  // namespace

TEST_CASE("nothing is expected before something came") {
  const ArrivalPredictor arrivals;
  CHECK_FALSE(arrivals.are_regular());
}

TEST_CASE("regular arrivals are predicted after a few, with a window of a few percent of the interval") {
  for (const std::int64_t gap : {ms, 10 * ms, 50 * ms, 1000 * ms}) {
    ArrivalPredictor arrivals;
    Clock::Time now = 1;
    int seen = 0;
    for (; !arrivals.are_regular(); now += gap, ++seen) arrivals.note(now, now + gap);
    CHECK(seen <= 8);
    for (int i = 0; i < 40; ++i, now += gap) arrivals.note(now, now + gap);
    const ArrivalPredictor::Window window = arrivals.next(now);
    CHECK(window.begin < now + gap);
    CHECK(window.end > now + gap);
    CHECK(window.end - window.begin <= 250'000);
  }
}

TEST_CASE("four regular arrivals are enough, measured from the last arrival or from idle") {
  ArrivalPredictor after_last;
  int seen = 0;
  for (Clock::Time now = 10 * ms; !after_last.are_regular(); now += 10 * ms, ++seen) {
    after_last.note(now - (seen % 2 == 0 ? ms : 9 * ms), now);  // idle for ever other spans
  }
  CHECK(seen == 6);  // the first tells no gap, and the second has none to be like

  ArrivalPredictor after_idle;
  seen = 0;
  for (Clock::Time idle_since = ms; !after_idle.are_regular(); ++seen) {
    const Clock::Time came = idle_since + 10 * ms;
    after_idle.note(idle_since, came);
    idle_since = came + (seen % 2 == 0 ? ms : 50 * ms);  // works for ever other spans
  }
  CHECK(seen == 5);
}

TEST_CASE("of two equally regular intervals the steadier one predicts") {
  ArrivalPredictor arrivals;
  Clock::Time came = ms;
  Clock::Time idle_since = came;
  for (int i = 0; i < 20; ++i) {  // every 10 ms, after work that takes 1.0 and 1.1 ms in turn
    idle_since = came + ms + (i % 2 == 0 ? 0 : ms / 10);
    came += 10 * ms;
    arrivals.note(idle_since, came);
  }
  const ArrivalPredictor::Window window = arrivals.next(came + 3 * ms);
  CHECK(window.begin < came + 10 * ms);
  CHECK(window.end > came + 10 * ms);
  CHECK(window.end < came + 11 * ms);
}

TEST_CASE("a little jitter is tolerated, and irregular arrivals are not predicted") {
  CHECK(predicted(10 * ms, 0.02, 100) >= 95);
  CHECK(predicted(50 * ms, 0.02, 100) >= 95);
  CHECK(predicted(ms, 0.05, 100) >= 95);
  CHECK(predicted(10 * ms, 0.2, 100) <= 30);
  CHECK(predicted(50 * ms, 0.5, 100) == 0);
}

TEST_CASE("work that takes now long and now short does not hide that it comes at regular times") {
  CHECK(foreseen_of_120([](int i, Clock::Time) { return i * 10 * ms; }) >= 110);
}

TEST_CASE("arrivals at a fixed interval after the last work's end are predicted, however long it took") {
  CHECK(foreseen_of_120([](int, Clock::Time idle_since) { return idle_since + 10 * ms; }) >= 110);
}

TEST_CASE("one very late arrival does not reset the prediction") {
  for (const std::int64_t late : {ms, 9 * ms, 25 * ms}) {
    ArrivalPredictor arrivals;
    Clock::Time now = 1;
    for (int i = 0; i < 20; ++i, now += 10 * ms) arrivals.note(now, now + 10 * ms);
    arrivals.note(now, now + 10 * ms + late);
    now += 10 * ms + late;
    REQUIRE(arrivals.are_regular());
    const ArrivalPredictor::Window window = arrivals.next(now);
    CHECK(window.begin < now + 10 * ms);
    CHECK(now + 10 * ms < window.end);
  }
}

TEST_CASE("a changed interval is learnt again") {
  ArrivalPredictor arrivals;
  Clock::Time now = 1;
  for (int i = 0; i < 20; ++i, now += 10 * ms) arrivals.note(now, now + 10 * ms);
  REQUIRE(arrivals.are_regular());
  for (int i = 0; i < 3; ++i, now += 100 * ms) arrivals.note(now, now + 100 * ms);
  CHECK_FALSE(arrivals.are_regular());
  for (int i = 0; i < 5; ++i, now += 100 * ms) arrivals.note(now, now + 100 * ms);
  CHECK(arrivals.are_regular());
  CHECK(arrivals.next(now).begin > now + 90 * ms);
}
