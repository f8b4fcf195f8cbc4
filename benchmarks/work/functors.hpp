// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <harness/slice.hpp>
#include <work/counting.hpp>
#include <work/lines.hpp>

namespace benchmarks {

// What all contenders compute. These two functions stand in a unit of their own, so that each contender runs the same
// machine code.

/// One sweep of Jacobi's method over some rows of a grid of `size` x `size`: each inner element becomes the mean of its
/// four neighbours, those at the edge are left alone.
void sweep_rows(const float* now, float* next, std::size_t size, std::size_t begin, std::size_t end) noexcept;

/// How many points of the unit square lie in the quarter of a circle: two points for each number from `begin` to `end`,
/// of the four random words that Philox makes of it.
std::uint64_t count_hits(std::uint64_t begin, std::uint64_t end) noexcept;

/// Which threads ran the first and the last part of a call. What noting costs all contenders pay.
class Runners {
 public:
  /// By the thread that runs the part from `begin` to `end` of `total`.
  void note(std::size_t begin, std::size_t end, std::size_t total) noexcept {
    static thread_local char me;
    if (begin == 0) first_.who = &me;
    if (end == total) last_.who = &me;
  }

  /// When a call has ended.
  void count() noexcept {
    ++calls_;
    if (first_.who != last_.who) ++on_two_;
  }
  double two_threads() const { return calls_ == 0 ? 0 : static_cast<double>(on_two_) / static_cast<double>(calls_); }

 private:
  struct alignas(128) Place {
    const void* who = nullptr;
  };
  Place first_;
  Place last_;
  std::uint64_t calls_ = 0;
  std::uint64_t on_two_ = 0;
};

/// Two grids, of which each is made from the other one in turn.
class Grids {
 public:
  explicit Grids(std::size_t size) : size_(size), now_(size * size), next_(size * size) {
    for (std::size_t i = 0; i < now_.size(); ++i) next_[i] = now_[i] = static_cast<float>(i * 2654435761U % 4093);
  }

  std::size_t size() const { return size_; }
  float* now() { return now_.data(); }
  float* next() { return next_.data(); }
  void turn() { now_.swap(next_); }

  /// Ends the program if `next`, as a contender made it of `now`, is not what one thread makes of it.
  void check(const Slice& slice) const {
    Floats expected = next_;
    sweep_rows(now_.data(), expected.data(), size_, 0, size_);
    if (expected != next_) slice.fault("wrong results");
  }

 private:
  std::size_t size_;
  Floats now_;
  Floats next_;
};

/// Case stencil: times `sweep(grids, runners)`, which makes `grids.next()` of `grids.now()` and notes its parts.
template <class Sweep>
int run_stencil(Slice& slice, const Sweep& sweep) {
  Grids grids(static_cast<std::size_t>(slice.number("size", 256)));
  Runners runners;
  sweep(grids, runners);
  grids.check(slice);
  slice.pin_caller();
  Report report = measure_and_count(slice, [&] {
    sweep(grids, runners);
    runners.count();
    grids.turn();
  });
  report.set("two_threads", runners.two_threads()).print();
  return 0;
}

/// Case points: times `hits(pairs, runners)`, which is how many of so many pairs of points are hits.
template <class Hits>
int run_points(Slice& slice, const Hits& hits) {
  const auto pairs = static_cast<std::uint64_t>(slice.number("points", 16384)) / 2;
  const std::uint64_t expected = count_hits(0, pairs);
  Runners runners;
  if (hits(pairs, runners) != expected) slice.fault("wrong results");
  slice.pin_caller();
  std::uint64_t wrong = 0;
  Report report = measure_and_count(slice, [&] {
    wrong += hits(pairs, runners) == expected ? 0 : 1;
    runners.count();
  });
  if (wrong != 0) slice.fault("wrong results");
  report.set("two_threads", runners.two_threads()).print();
  return 0;
}

}  // namespace benchmarks
