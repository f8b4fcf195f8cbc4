// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "choices.hpp"

namespace interleavings {

/// The memory orders of C++, without consume.
enum class Order { relaxed, acquire, release, acq_rel, seq_cst };

inline constexpr bool acquires(Order order) { return order != Order::relaxed && order != Order::release; }
inline constexpr bool releases(Order order) { return order != Order::relaxed && order != Order::acquire; }

inline constexpr std::size_t most_threads = 5;  // thread 0 is the one that starts the others
inline constexpr std::size_t most_locations = 48;

/// What a thread knows: the latest store of each location, and the latest step of each thread, that happened before.
struct View {
  std::array<std::uint16_t, most_locations> seen{};
  std::array<std::uint16_t, most_threads> steps{};

  void join(const View& other) {
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = seen[i] < other.seen[i] ? other.seen[i] : seen[i];
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = steps[i] < other.steps[i] ? other.steps[i] : steps[i];
  }
};

/// The last read and the last write of a plain variable by each thread, as steps of that thread.
struct PlainAccesses {
  std::array<std::uint16_t, most_threads> reads{};
  std::array<std::uint16_t, most_threads> writes{};
};

/// Memory with the weak order that C++ allows. Each atomic location keeps the history of its stores. A load may return
/// an old value. It may not if the thread knows a newer store: from its own accesses, from what it acquired, or from
/// the order of the seq_cst accesses. The store then seems delayed, or the load early. An old value counts as a
/// surprise. So does a weak compare-exchange that fails without a reason. An execution has a limited number of
/// surprises.
class Memory {
 public:
  /// What a read-modify-write found, and whether it wrote.
  struct Exchanged {
    std::uint64_t found;
    bool written;
  };

  explicit Memory(Choices& choices) : choices_(choices) {}

  /// Begins an execution: forgets all locations and threads.
  void clear(int surprises);

  void add(const void* address, std::uint64_t value);
  void remove(const void* address);
  /// True if this execution has made the atomic and not destroyed it.
  bool has(const void* address) const { return find(address) != none; }
  /// The number of the atomic, in the order in which they were made.
  std::size_t number(const void* address) const { return find(address); }
  std::uint64_t newest(const void* address) const { return locations_[find(address)].history.back().value; }

  std::uint64_t load(std::size_t thread, const void* address, Order order);
  void store(std::size_t thread, const void* address, std::uint64_t value, Order order);

  /// Writes `change(newest)` and returns the newest value.
  template <class Change>
  std::uint64_t modify(std::size_t thread, const void* address, Order order, const Change& change) {
    const std::uint64_t found = newest(address);
    write(thread, find(address), change(found), order, true);
    return found;
  }

  Exchanged compare_exchange(std::size_t thread, const void* address, std::uint64_t expected, std::uint64_t value,
                             Order order, bool weak);

  /// True if the execution takes one of its surprises here.
  bool surprise();

  /// Notes an access to a plain variable. False if it races with another thread's access.
  bool access(std::size_t thread, PlainAccesses& accesses, bool writes);

  /// Makes everything that `from` has done happen before what `to` does next.
  void synchronize(std::size_t from, std::size_t to) {
    step(from);
    views_[to].join(views_[from]);
  }

 private:
  struct Store {
    std::uint64_t value;
    View view;  // what a thread learns that acquires it
  };
  struct Location {
    const void* address;
    std::vector<Store> history;
    std::size_t seq_cst;  // the latest store that a seq_cst access has read or written
  };
  static constexpr std::size_t none = most_locations;

  std::size_t find(const void* address) const;
  void step(std::size_t thread) { ++views_[thread].steps[thread]; }
  std::uint64_t read(std::size_t thread, std::size_t location, std::size_t time, Order order);
  void write(std::size_t thread, std::size_t location, std::uint64_t value, Order order, bool modifies);
  /// The old stores that a load may return, as places in the history. One store for each value.
  std::vector<std::size_t>& older(std::size_t thread, std::size_t location, Order order);

  Choices& choices_;
  int surprises_ = 0;
  std::size_t count_ = 0;
  std::array<Location, most_locations> locations_{};
  std::array<View, most_threads> views_{};
  std::vector<std::size_t> times_;
};

}  // namespace interleavings
