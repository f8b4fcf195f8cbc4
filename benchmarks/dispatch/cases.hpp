// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dispatch/bodies.hpp>
#include <dispatch/idle.hpp>
#include <dispatch/wake.hpp>
#include <harness/slice.hpp>

namespace benchmarks {

/// How a contender is placed.
struct Placing {
  /// Bind the caller to the first core, after its pool was started: not for those that start a thread in each call.
  bool pin_caller = true;
};

/// The cases of dispatch, for any contender: `fork_join(bodies)` calls bodies(0) and bodies(1), at the same time if it
/// can, and returns when both have ended.
///
/// fork_join  body= meeting=             calls back to back
/// metg                                  the smallest body with 50 % efficiency, calls back to back
/// periodic   body= gap= jitter=         a call after each gap; also says efficiency, which is body / time, and
///                                       overhead, which is time - body, at least a nanosecond
/// tiny       body= gap= jitter=         in turns a call and the same by one thread, each after a gap; says the excess
///                                       of the call, and that of the 99th percentile also in wakes of a sleeping
///                                       thread
/// idle                                  what the process uses one second after its last call
template <class ForkJoin>
class Dispatch {
 public:
  Dispatch(Slice& slice, const ForkJoin& fork_join, Placing placing)
      : slice_(slice),
        fork_join_(fork_join),
        placing_(placing),
        body_(slice.number("body", 0)),
        gaps_(slice.number("gap", 0), slice.number("jitter", 0)),
        bodies_(slice.number("meeting", 0) > 0, !placing.pin_caller) {
    slice.all_keys_read();
  }

  /// The exit code of the program.
  int run() {
    number_of_this_thread();
    fork_join_(bodies_);
    if (placing_.pin_caller) slice_.pin_caller();
    timer_ = ticks_of_timer();
    const std::uint64_t turns = turns_in(body_);
    bodies_.set_turns(turns);
    one_.set_turns(turns);
    const std::string& name = slice_.name();
    if (name == "fork_join") {
      finish(slice_.measure([this] { fork_join_(bodies_); }));
    } else if (name == "metg") {
      metg();
    } else if (name == "periodic") {
      periodic();
    } else if (name == "tiny") {
      tiny();
    } else if (name == "idle") {
      idle();
    } else {
      slice_.fault("no case " + name);
    }
    return 0;
  }

 private:
  void finish(Report report) const {
    if (bodies_.calls(0) != bodies_.calls(1)) slice_.fault("a body was not run in each call");
    report.set("two_threads", bodies_.two_threads());
    if (!placing_.pin_caller) report.set("two_cores", bodies_.two_cores());
    report.print();
  }

  std::int64_t timed_call() const {
    const std::int64_t begin = ticks();
    fork_join_(bodies_);
    return ticks() - begin;
  }

  std::int64_t timed_alone(std::size_t bodies) const {
    const std::int64_t begin = ticks();
    for (std::size_t i = 0; i < bodies; ++i) one_(i);
    return ticks() - begin;
  }

  static std::int64_t ticks_in_a_millisecond() {
    const TickRate rate;
    usleep(2000);
    return static_cast<std::int64_t>(1e6 / rate.nanoseconds_per_tick());
  }

  /// Calls go on until this time is over, at least this often.
  template <class Step>
  static void repeat(double seconds, int least, const Step& step) {
    const std::int64_t end = nanoseconds() + static_cast<std::int64_t>(seconds * 1e9);
    for (int i = 0; i < least || nanoseconds() < end; ++i) step();
  }

  void warm_up() {
    repeat(slice_.seconds() / 10, 12, [this] {
      gaps_.pass();
      fork_join_(bodies_);
    });
  }

  void periodic() {
    warm_up();
    Samples samples;
    const TickRate rate;
    const Load load;
    repeat(slice_.seconds(), 3, [&] {
      gaps_.pass();
      samples.add(timed_call());
    });
    Report report = slice_.report(samples, load, rate);
    const std::vector<double> sorted = samples.sorted(rate.nanoseconds_per_tick(), ticks_of_timer());
    const double time = quantile(sorted, 0.5);
    report.set("efficiency", body_ / time).set("overhead_ns", std::max(time - body_, 1.0));
    finish(report);
  }

  void tiny() {
    const std::int64_t wake = ticks_of_a_wake(slice_.core(1));
    warm_up();
    Samples samples, alone;
    const TickRate rate;
    const Load load;
    repeat(slice_.seconds(), 3, [&] {
      gaps_.pass();
      samples.add(timed_call());
      gaps_.pass();
      alone.add(timed_alone(2));
    });
    Report report = slice_.report(samples, load, rate);
    const double tick = rate.nanoseconds_per_tick();
    const std::vector<double> ours = samples.sorted(tick, ticks_of_timer()), one = alone.sorted(tick, ticks_of_timer());
    set_quantiles(report, one, "serial_");
    report.set("excess_median_ns", quantile(ours, 0.5) - quantile(one, 0.5));
    report.set("excess_p99_ns", quantile(ours, 0.99) - quantile(one, 0.99));
    report.set("wake_ns", static_cast<double>(wake) * tick);
    report.set("excess_p99_in_wakes",
               (quantile(ours, 0.99) - quantile(one, 0.99)) / (static_cast<double>(wake) * tick));
    finish(report);
  }

  void idle() {
    repeat(slice_.seconds() / 10, 1000, [this] { fork_join_(bodies_); });
    sleep(1);
    Samples samples;
    const TickRate rate;
    const Load load;
    usleep(static_cast<useconds_t>(slice_.seconds() * 1e6));
    samples.add(0);
    finish(slice_.report(samples, load, rate));
  }

  void metg() {
    Samples smallest;
    const TickRate rate;
    const Load load;
    repeat(slice_.seconds(), 2, [&] { smallest.add(half_efficient()); });
    Report report = slice_.report(smallest, load, rate);
    report.set("timer_ns", 0);
    const std::vector<double> sorted = smallest.sorted(rate.nanoseconds_per_tick(), 0);
    set_quantiles(report, sorted);
    report.set("never", quantile(sorted, 0.5) >= 1e6);
    finish(report);
  }

  /// How long the smallest body takes for which a call takes at most twice as long, in ticks: found by doubling and
  /// halving, up to a millisecond.
  std::int64_t half_efficient() {
    std::uint64_t enough = turns_in_30ns_;
    while (!is_half_efficient(enough)) {
      if (alone_ > most_) return alone_;
      enough *= 2;
    }
    std::uint64_t too_few = enough / 2;
    std::int64_t found = alone_;
    for (int step = 0; step < 6; ++step) {
      const std::uint64_t middle = (too_few + enough) / 2;
      if (is_half_efficient(middle)) {
        enough = middle;
        found = alone_;
      } else {
        too_few = middle;
      }
    }
    return found;
  }

  /// By the medians of 40 calls and of 15 bodies alone; two bodies on one thread are not, though they take twice as
  /// long as one. Sets alone_.
  bool is_half_efficient(std::uint64_t turns) {
    bodies_.set_turns(turns);
    one_.set_turns(turns);
    const std::int64_t together = median_of<40>([this] { return timed_call(); });
    alone_ = std::max<std::int64_t>(1, median_of<15>([this] { return timed_alone(1); }));
    return together <= 2 * alone_ && bodies_.two_threads(40) > 0.5;
  }

  template <std::size_t Count, class Sample>
  std::int64_t median_of(const Sample& sample) const {
    std::array<std::int64_t, Count> values{};
    for (std::int64_t& value : values) value = std::max<std::int64_t>(sample() - timer_, 0);
    std::nth_element(values.begin(), values.begin() + Count / 2, values.end());
    return values[Count / 2];
  }

  Slice& slice_;
  const ForkJoin& fork_join_;
  Placing placing_;
  double body_;
  Gaps gaps_;
  Bodies bodies_;
  Bodies one_;  // what the caller does alone
  std::int64_t timer_ = 0;
  std::int64_t alone_ = 0;
  std::int64_t most_ = ticks_in_a_millisecond();
  std::uint64_t turns_in_30ns_ = turns_in(30);
};

/// The program of one contender: runs the case that the arguments name.
template <class ForkJoin>
int run_dispatch(Slice& slice, const ForkJoin& fork_join, Placing placing = {}) {
  return Dispatch<ForkJoin>(slice, fork_join, placing).run();
}

}  // namespace benchmarks
