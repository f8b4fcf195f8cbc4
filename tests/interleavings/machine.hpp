// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

#include <ucontext.h>

#include "choices.hpp"
#include "fault.hpp"
#include "memory.hpp"

namespace interleavings {

/// An operation on an atomic that an execution came to.
struct Access {
  std::string file;
  unsigned line;
  Operation operation;
  Order order;

  friend auto operator<=>(const Access&, const Access&) = default;
};

/// The bounds of the search, for each execution.
struct Limits {
  int preemptions = 2;  ///< switches away from a thread that could go on
  int surprises = 2;    ///< old values, weak compare-exchanges that fail, and sleeps that end without a reason
  int timeouts = 0;     ///< sleeps that end because their time has come
  int steps = 2000;     ///< operations; an execution with more of them is a livelock
};

/// Thrown if an execution went wrong.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The modelled machine: threads that run one at a time, memory, and a clock. Another thread may go on before each
/// operation on an atomic, each sleep and each wake-up, and at each pause and yield.
class Machine {
 public:
  explicit Machine(Choices& choices);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Runs `scenario` once. Returns what went wrong, or an empty text. Prints each step if `tells`.
  std::string execute(void (*scenario)(), const Limits& limits, const Fault* fault, bool tells);

  /// Notes the operations of all further executions in `accesses`.
  void note(std::set<Access>* accesses) { accesses_ = accesses; }

  /// The machine of the current execution, or null.
  static Machine* now() { return now_; }

  // Threads.

  /// Adds a thread. A service may be unfinished when the execution ends.
  void start(void* (*enter)(void*), void* argument, bool service);
  /// Runs the started threads until all but the services have finished.
  void run();
  [[noreturn]] void fail(const std::string& why);

  void park(const void* word, std::uint32_t expected, std::int64_t until, const Place& place);
  void unpark_all(const void* word, const Place& place);
  void pause();
  void yield();

  /// The time in nanoseconds. It advances when it is read, and when a sleep times out.
  std::int64_t clock() { return time_ += 1000; }
  static constexpr std::int64_t never = INT64_MAX;
  /// From now on, so many sleeps may time out.
  void allow_timeouts(int timeouts) { limits_.timeouts = timeouts; }

  // Memory.

  void add(const void* atomic, std::uint64_t value) { memory_.add(atomic, value); }
  void remove(const void* atomic) { memory_.remove(atomic); }
  bool has(const void* atomic) const { return memory_.has(atomic); }

  std::uint64_t load(const void* atomic, Order order, const Place& place);
  void store(const void* atomic, std::uint64_t value, Order order, const Place& place);
  Memory::Exchanged compare_exchange(const void* atomic, std::uint64_t expected, std::uint64_t value, Order order,
                                     bool weak, const Place& place);
  /// Writes `change(found, operand)` and returns `found`.
  using Change = std::uint64_t (*)(std::uint64_t found, std::uint64_t operand);
  std::uint64_t modify(const void* atomic, Change change, std::uint64_t operand, Operation what, Order order,
                       const Place& place);

  void access(PlainAccesses& accesses, bool writes);

 private:
  enum class State { ready, parked, finished };

  struct Thread {
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack;
    void* (*enter)(void*) = nullptr;
    void* argument = nullptr;
    bool service = false;
    State state = State::finished;
    bool yielded = false;  // until another thread writes
    int alone = 0;         // steps without a write since it began to run
    // While parked.
    const void* word = nullptr;
    std::int64_t until = never;
    Place place;
    // In a loop of pauses.
    bool decided = false;    // it has chosen between patient and impatient
    bool impatient = false;  // it stays in the loop while the other threads stand still
    int pauses = 0;
    int since_pause = 0;
    int in_turn = 0;
    // The write that a fault delays.
    const void* late_word = nullptr;
    Change late_change = nullptr;
    std::uint64_t late_operand = 0;
    Order late_order = Order::relaxed;
  };

  /// An impatient thread yields after so many pauses: more than a bounded loop in the headers has.
  static constexpr int most_pauses = 70;
  /// The system preempts a thread after so many steps without a write. A loop without a pause is therefore no livelock.
  static constexpr int most_alone = 60;
  static constexpr std::size_t stack_bytes = std::size_t{128} << 10U;

  static void begin();
  Thread& self() { return threads_[current_]; }
  std::string name(std::size_t thread) const;
  void point(bool writes);
  bool may_time_out(const Thread& thread) const;
  bool is_enabled(const Thread& thread) const { return thread.state == State::ready; }
  void switch_to(std::size_t thread);
  void leave_to_another();
  void wrote();
  void write_late();
  void be_late(const void* word, Change change, std::uint64_t operand, Order order);
  void use(const void* atomic, const Place& place);
  bool faulty(Operation what, Fault::How how, const Place& place) const;
  Order weakened(Operation what, Order order, const Place& place);
  void tell(const char* what, const void* word, const std::string& more, const Place& place) const;

  static Machine* now_;

  Choices& choices_;
  Memory memory_;
  Limits limits_;
  const Fault* fault_ = nullptr;
  std::set<Access>* accesses_ = nullptr;
  bool tells_ = false;
  std::int64_t time_ = 0;
  int steps_ = 0;
  std::size_t count_ = 1;  // thread 0 is the scenario itself
  std::size_t current_ = 0;
  std::size_t unfinished_ = 0;
  std::array<Thread, most_threads> threads_;
  std::string failure_;
};

/// Fails the execution if `holds` is false.
inline void check(bool holds, const char* what) {
  if (!holds) Machine::now()->fail(what);
}

/// Runs each function on a thread of its own and returns when all have returned.
template <class... Body>
void run(Body&&... bodies) {
  const auto start = []<class B>(B& body) {
    void* const argument = const_cast<void*>(static_cast<const void*>(&body));
    Machine::now()->start([](void* of) -> void* { return (*static_cast<B*>(of))(), nullptr; }, argument, false);
  };
  (start(bodies), ...);
  Machine::now()->run();
}

/// A plain variable. A data race on it fails the execution.
template <class T>
class Plain {
 public:
  explicit Plain(T value) : value_(value) {}
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  T get() const {
    Machine::now()->access(accesses_, false);
    return value_;
  }
  void set(T value) {
    Machine::now()->access(accesses_, true);
    value_ = value;
  }

 private:
  T value_;
  mutable PlainAccesses accesses_;
};

}  // namespace interleavings
