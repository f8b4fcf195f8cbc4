// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "machine.hpp"

#include <cstdio>
#include <string_view>

namespace interleavings {

namespace {

const char* name_of(Order order) {
  switch (order) {
    case Order::relaxed:
      return "relaxed";
    case Order::acquire:
      return "acquire";
    case Order::release:
      return "release";
    case Order::acq_rel:
      return "acq_rel";
    case Order::seq_cst:
      return "seq_cst";
  }
  return "";
}

/// The file as the library includes it, or the whole path.
std::string file_of(const Place& place) {
  const std::string_view file(place.file_name());
  const std::size_t at = file.rfind("fanout/");
  return std::string(at == std::string_view::npos ? file : file.substr(at));
}

std::string place_of(const Place& place) { return file_of(place) + ":" + std::to_string(place.line()); }

}  // namespace

Machine* Machine::now_ = nullptr;

Machine::Machine(Choices& choices) : choices_(choices), memory_(choices) {
  for (std::size_t i = 1; i < most_threads; ++i) threads_[i].stack = std::make_unique<std::byte[]>(stack_bytes);
}

std::string Machine::execute(void (*scenario)(), const Limits& limits, const Fault* fault, bool tells) {
  memory_.clear(limits.surprises);
  limits_ = limits;
  fault_ = fault;
  tells_ = tells;
  time_ = 0;
  steps_ = 0;
  count_ = 1;
  current_ = 0;
  unfinished_ = 0;
  failure_.clear();
  choices_.rewind();
  now_ = this;
  try {
    scenario();
  } catch (const Failure& failure) {
    failure_ = failure.what();
  }
  now_ = nullptr;
  return failure_;
}

std::string Machine::name(std::size_t thread) const {
  return thread == 0 ? "scenario" : (threads_[thread].service ? "service " : "thread ") + std::to_string(thread);
}

void Machine::tell(const char* what, const void* word, const std::string& more, const Place& place) const {
  std::printf("  %-10s %-17s atomic %-2zu  %-28s %s\n", name(current_).c_str(), what, memory_.number(word),
              more.c_str(), place_of(place).c_str());
}

// ---- threads ----

void Machine::start(void* (*enter)(void*), void* argument, bool service) {
  if (count_ == most_threads) fail("the scenario starts too many threads");
  Thread& thread = threads_[count_];
  std::unique_ptr<std::byte[]> stack = std::move(thread.stack);
  thread = Thread{};
  thread.stack = std::move(stack);
  thread.enter = enter;
  thread.argument = argument;
  thread.service = service;
  thread.state = State::ready;
  ::getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = stack_bytes;
  thread.context.uc_link = nullptr;
  ::makecontext(&thread.context, &Machine::begin, 0);
  memory_.synchronize(current_, count_);
  if (!service) ++unfinished_;
  ++count_;
}

void Machine::begin() {
  Machine& machine = *now_;
  Thread& self = machine.self();
  self.enter(self.argument);
  if (self.late_word != nullptr) machine.write_late();
  self.state = State::finished;
  machine.memory_.synchronize(machine.current_, 0);
  if (!self.service && --machine.unfinished_ == 0) machine.switch_to(0);
  machine.wrote();
  machine.leave_to_another();
}

void Machine::run() {
  if (unfinished_ > 0) leave_to_another();
  if (!failure_.empty()) throw Failure(failure_);
}

void Machine::fail(const std::string& why) {
  if (current_ == 0) throw Failure(why);
  failure_ = why;
  switch_to(0);
  std::abort();  // not reached: the thread never runs again
}

void Machine::switch_to(std::size_t thread) {
  const std::size_t from = current_;
  if (thread == from) return;
  current_ = thread;
  ::swapcontext(&threads_[from].context, &threads_[thread].context);
}

bool Machine::may_time_out(const Thread& thread) const {
  return thread.state == State::parked && thread.until != never && limits_.timeouts > 0;
}

/// Lets another thread go on before an operation.
void Machine::point(bool writes) {
  if (current_ == 0) return;
  if (++steps_ > limits_.steps) fail("livelock: too many steps");
  Thread& here = self();
  if (here.impatient) {
    if (!writes && ++here.since_pause <= here.in_turn) return;
    here.impatient = false;
  }
  if (writes) here.decided = false;
  here.alone = writes ? 0 : here.alone + 1;
  if (here.alone > most_alone) return yield();
  std::array<std::size_t, most_threads> others{};
  std::size_t count = 0;
  for (std::size_t i = 1; i < count_; ++i) {
    if (i == current_) continue;
    if ((is_enabled(threads_[i]) && !threads_[i].yielded && limits_.preemptions > 0) || may_time_out(threads_[i])) {
      others[count++] = i;
    }
  }
  const std::size_t chosen = choices_.choose(1 + count);
  if (chosen == 0) return;
  Thread& next = threads_[others[chosen - 1]];
  if (next.state == State::parked) {
    --limits_.timeouts;
    next.state = State::ready;
    if (time_ < next.until) time_ = next.until;
  } else {
    --limits_.preemptions;
  }
  switch_to(others[chosen - 1]);
}

/// Chooses the next thread when the current one cannot go on or yields. This is no preemption.
void Machine::leave_to_another() {
  std::array<std::size_t, most_threads> others{};
  std::size_t count = 0;
  for (std::size_t i = 1; i < count_; ++i) {
    if (is_enabled(threads_[i]) && !threads_[i].yielded) others[count++] = i;
  }
  if (count == 0) {
    for (std::size_t i = 1; i < count_; ++i) {
      threads_[i].yielded = false;
      if (is_enabled(threads_[i])) others[count++] = i;
    }
  }
  if (count == 0) {
    for (std::size_t i = 1; i < count_; ++i) {
      if (may_time_out(threads_[i])) others[count++] = i;
    }
  }
  if (count == 0) {
    std::string why = "deadlock:";
    for (std::size_t i = 1; i < count_; ++i) {
      if (threads_[i].state == State::finished) continue;
      why += " " + name(i) + " sleeps at " + place_of(threads_[i].place) +
             (threads_[i].until == never ? "," : " and only a timeout would wake it,");
    }
    why.pop_back();
    fail(why);
  }
  const std::size_t next = others[choices_.choose(count)];
  if (threads_[next].state == State::parked) {
    --limits_.timeouts;
    threads_[next].state = State::ready;
    if (time_ < threads_[next].until) time_ = threads_[next].until;
  }
  switch_to(next);
}

/// Lets the threads go on that yielded, since something has changed.
void Machine::wrote() {
  for (std::size_t i = 1; i < count_; ++i) threads_[i].yielded = false;
}

void Machine::park(const void* word, std::uint32_t expected, std::int64_t until, const Place& place) {
  if (self().late_word != nullptr) write_late();
  point(true);
  use(word, place);
  if (current_ == 0) fail("the scenario itself sleeps");
  const bool checks = !faulty(Operation::park, Fault::How::unchecked, place);
  if ((checks && static_cast<std::uint32_t>(memory_.newest(word)) != expected) || memory_.surprise()) {
    if (tells_) tell("does not sleep", word, "", place);
    return;
  }
  if (tells_) tell("sleeps", word, until == never ? "" : "until a time", place);
  Thread& here = self();
  here.state = State::parked;
  here.word = word;
  here.until = until;
  here.place = place;
  leave_to_another();
  if (tells_) tell("wakes", word, "", place);
}

void Machine::unpark_all(const void* word, const Place& place) {
  point(true);
  if (!faulty(Operation::unpark, Fault::How::skipped, place)) {
    if (tells_) tell("wakes all", word, "", place);
    for (std::size_t i = 1; i < count_; ++i) {
      if (threads_[i].state == State::parked && threads_[i].word == word) threads_[i].state = State::ready;
    }
  }
  if (self().late_word != nullptr) write_late();
}

void Machine::pause() {
  if (current_ == 0) return;
  Thread& here = self();
  if (here.impatient) {
    if (here.pauses == 1) here.in_turn = here.since_pause;
    here.since_pause = 0;
    if (++here.pauses <= most_pauses) return;
    here.impatient = false;
  } else if (!here.decided) {
    here.decided = true;
    here.impatient = choices_.choose(2) == 1;
    here.pauses = 1;
    here.since_pause = 0;
    here.in_turn = INT32_MAX;
    if (here.impatient) return;
  }
  yield();
}

void Machine::yield() {
  if (current_ == 0) return;
  if (++steps_ > limits_.steps) fail("livelock: too many steps");
  self().yielded = true;
  self().alone = 0;
  leave_to_another();
}

// ---- memory ----

void Machine::use(const void* atomic, const Place& place) {
  if (!memory_.has(atomic)) fail("an atomic is used that is gone, at " + place_of(place));
}

bool Machine::faulty(Operation what, Fault::How how, const Place& place) const {
  return fault_ != nullptr && fault_->how == how && fault_->hits(what, place);
}

Order Machine::weakened(Operation what, Order order, const Place& place) {
  if (accesses_ != nullptr) accesses_->insert({file_of(place), place.line(), what, order});
  if (faulty(what, Fault::How::relaxed, place)) return Order::relaxed;
  if (order != Order::seq_cst || !faulty(what, Fault::How::acq_rel, place)) return order;
  return what == Operation::load ? Order::acquire : what == Operation::store ? Order::release : Order::acq_rel;
}

void Machine::be_late(const void* word, Change change, std::uint64_t operand, Order order) {
  Thread& here = self();
  here.late_word = word;
  here.late_change = change;
  here.late_operand = operand;
  here.late_order = order;
}

void Machine::write_late() {
  point(true);
  Thread& here = self();
  const void* const word = std::exchange(here.late_word, nullptr);
  memory_.modify(current_, word, here.late_order,
                 [&](std::uint64_t found) { return here.late_change(found, here.late_operand); });
  wrote();
  if (tells_) tell("writes at last", word, "", Place::current());
}

std::uint64_t Machine::load(const void* atomic, Order order, const Place& place) {
  point(false);
  use(atomic, place);
  const std::uint64_t newest = memory_.newest(atomic);
  const Order how = weakened(Operation::load, order, place);
  const std::uint64_t found = memory_.load(current_, atomic, how);
  if (tells_)
    tell("loads", atomic, std::to_string(found) + (found == newest ? " " : ", an old value, ") + name_of(how), place);
  if (self().late_word != nullptr) write_late();
  return found;
}

void Machine::store(const void* atomic, std::uint64_t value, Order order, const Place& place) {
  point(true);
  use(atomic, place);
  if (faulty(Operation::store, Fault::How::skipped, place)) return;
  if (faulty(Operation::store, Fault::How::late, place)) {
    return be_late(
        atomic, [](std::uint64_t, std::uint64_t operand) { return operand; }, value, order);
  }
  const Order how = weakened(Operation::store, order, place);
  memory_.store(current_, atomic, value, how);
  wrote();
  if (tells_) tell("stores", atomic, std::to_string(value) + " " + name_of(how), place);
  if (self().late_word != nullptr) write_late();
}

std::uint64_t Machine::modify(const void* atomic, Change change, std::uint64_t operand, Operation what, Order order,
                              const Place& place) {
  point(true);
  use(atomic, place);
  if (faulty(what, Fault::How::skipped, place)) return memory_.load(current_, atomic, Order::relaxed);
  if (faulty(what, Fault::How::late, place)) {
    be_late(atomic, change, operand, order);
    return memory_.newest(atomic);
  }
  const Order how = weakened(what, order, place);
  std::uint64_t found = 0;
  if (faulty(what, Fault::How::torn, place)) {
    found = memory_.load(current_, atomic, order);
    point(true);
    memory_.modify(current_, atomic, order, [&](std::uint64_t) { return change(found, operand); });
  } else {
    found = memory_.modify(current_, atomic, how, [&](std::uint64_t seen) { return change(seen, operand); });
  }
  if (change(found, operand) != found) wrote();
  if (tells_)
    tell("modifies", atomic,
         std::to_string(found) + " to " + std::to_string(change(found, operand)) + " " + name_of(how), place);
  if (self().late_word != nullptr) write_late();
  return found;
}

Memory::Exchanged Machine::compare_exchange(const void* atomic, std::uint64_t expected, std::uint64_t value,
                                            Order order, bool weak, const Place& place) {
  point(true);
  use(atomic, place);
  const Order how = weakened(Operation::compare_exchange, order, place);
  Memory::Exchanged exchanged{};
  if (faulty(Operation::compare_exchange, Fault::How::torn, place)) {
    exchanged.found = memory_.load(current_, atomic, order);
    exchanged.written = exchanged.found == expected;
    point(true);
    if (exchanged.written) memory_.modify(current_, atomic, order, [&](std::uint64_t) { return value; });
  } else {
    exchanged = memory_.compare_exchange(current_, atomic, expected, value, how, weak);
  }
  if (exchanged.written) wrote();
  if (tells_)
    tell(exchanged.written ? "exchanges" : "does not exchange", atomic,
         std::to_string(exchanged.found) + (exchanged.written ? " for " : ", not for ") + std::to_string(value) + " " +
             name_of(how),
         place);
  if (self().late_word != nullptr) write_late();
  return exchanged;
}

void Machine::access(PlainAccesses& accesses, bool writes) {
  if (!memory_.access(current_, accesses, writes)) fail("data race: two threads access a plain variable");
}

}  // namespace interleavings

/// Replaces the system's function, which handoff_slot.hpp calls.
extern "C" int sched_yield() noexcept {
  if (interleavings::Machine* machine = interleavings::Machine::now()) machine->yield();
  return 0;
}
