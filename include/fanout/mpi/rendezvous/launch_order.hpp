// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>
#include <mutex>
#include <set>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The order in which this process starts collectives that devices of several processes run. All processes must start
/// them in one order, also those of different calls: otherwise two devices would wait for each other forever, each in a
/// collective that the other one has not begun.
///
/// This is Skeen's algorithm. Each process proposes a turn, which is after all that it knows of. The latest proposal of
/// the processes that take part counts. A process starts a collective when its turn is known, and before all other
/// turns of this process. Thread-safe.
class LaunchOrder {
 public:
  /// Different for any two proposals of all processes.
  using Turn = std::uint64_t;

  /// A collective that has not been started. Leaves the order when it is destroyed.
  class Place {
   public:
    explicit Place(LaunchOrder& order) : order_(order) {
      const std::lock_guard changing(order_.mutex_);
      turn_ = (++order_.last_ << bits_of_process) | order_.process_;
      order_.turns_.insert(turn_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      const std::lock_guard changing(order_.mutex_);
      order_.turns_.erase(turn_);
    }

    /// The latest proposal so far.
    Turn turn() const noexcept { return turn_; }

    /// Another process has proposed this turn.
    FANOUT_INLINE void hear(Turn other);

    /// True if no other collective of this process comes before. Later proposals come after.
    bool is_next() const {
      const std::lock_guard looking(order_.mutex_);
      return *order_.turns_.begin() == turn_;
    }

   private:
    LaunchOrder& order_;
    Turn turn_ = 0;
  };

  /// `process`: the number of this process among those of the program.
  explicit LaunchOrder(std::uint64_t process) noexcept : process_(process) {}
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  /// That of this process, whose number never changes.
  static LaunchOrder& of_process(std::uint64_t number) {
    static LaunchOrder order(number);
    return order;
  }

 private:
  static constexpr unsigned bits_of_process = 24;

  const std::uint64_t process_;
  std::mutex mutex_;        // guards the members below
  std::uint64_t last_ = 0;  // time of the latest proposal that is known here
  std::set<Turn> turns_;    // of what has not been started
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/launch_order.ipp>
#endif
