// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace interleavings {

void Memory::clear(int surprises) {
  surprises_ = surprises;
  count_ = 0;
  views_ = {};
}

void Memory::add(const void* address, std::uint64_t value) {
  if (count_ == most_locations) {
    std::fprintf(stderr, "interleavings: a scenario has more than %zu atomics\n", most_locations);
    std::abort();
  }
  Location& location = locations_[count_++];
  location.address = address;
  location.history.clear();
  location.history.push_back({value, {}});
  location.seq_cst = 0;
}

void Memory::remove(const void* address) {
  if (const std::size_t location = find(address); location != none) locations_[location].address = nullptr;
}

std::size_t Memory::find(const void* address) const {
  for (std::size_t i = count_; i > 0; --i) {
    if (locations_[i - 1].address == address) return i - 1;
  }
  return none;
}

std::uint64_t Memory::read(std::size_t thread, std::size_t location, std::size_t time, Order order) {
  Location& at = locations_[location];
  View& view = views_[thread];
  view.seen[location] = std::max(view.seen[location], static_cast<std::uint16_t>(time));
  if (acquires(order)) view.join(at.history[time].view);
  if (order == Order::seq_cst) at.seq_cst = std::max(at.seq_cst, time);
  return at.history[time].value;
}

void Memory::write(std::size_t thread, std::size_t location, std::uint64_t value, Order order, bool modifies) {
  Location& at = locations_[location];
  View& view = views_[thread];
  const std::size_t time = at.history.size();
  if (modifies) read(thread, location, time - 1, order);
  step(thread);
  view.seen[location] = static_cast<std::uint16_t>(time);
  // The release sequence: a read-modify-write passes on what the store before it released.
  View released = modifies ? at.history.back().view : View{};
  if (releases(order)) released.join(view);
  at.history.push_back({value, released});
  if (order == Order::seq_cst) at.seq_cst = time;
}

std::vector<std::size_t>& Memory::older(std::size_t thread, std::size_t location, Order order) {
  times_.clear();
  if (surprises_ == 0) return times_;
  const Location& at = locations_[location];
  std::size_t oldest = views_[thread].seen[location];
  if (order == Order::seq_cst) oldest = std::max(oldest, at.seq_cst);
  for (std::size_t time = at.history.size() - 1; time > oldest; --time) {
    const auto same = [&](std::size_t other) { return at.history[other].value == at.history[time - 1].value; };
    if (!same(at.history.size() - 1) && std::none_of(times_.begin(), times_.end(), same)) times_.push_back(time - 1);
  }
  return times_;
}

std::uint64_t Memory::load(std::size_t thread, const void* address, Order order) {
  const std::size_t location = find(address);
  step(thread);
  const std::vector<std::size_t>& times = older(thread, location, order);
  const std::size_t chosen = choices_.choose(1 + times.size());
  if (chosen > 0) --surprises_;
  return read(thread, location, chosen > 0 ? times[chosen - 1] : locations_[location].history.size() - 1, order);
}

void Memory::store(std::size_t thread, const void* address, std::uint64_t value, Order order) {
  write(thread, find(address), value, order, false);
}

Memory::Exchanged Memory::compare_exchange(std::size_t thread, const void* address, std::uint64_t expected,
                                           std::uint64_t value, Order order, bool weak) {
  const std::size_t location = find(address);
  const std::vector<Store>& history = locations_[location].history;
  const Order of_load = order == Order::acq_rel ? Order::acquire : order == Order::release ? Order::relaxed : order;
  std::vector<std::size_t>& times = older(thread, location, of_load);
  std::erase_if(times, [&](std::size_t time) { return history[time].value == expected; });
  const bool equal = history.back().value == expected;
  if (weak && equal && surprises_ > 0) times.push_back(history.size() - 1);
  const std::size_t chosen = choices_.choose(1 + times.size());
  if (chosen == 0 && equal) {
    write(thread, location, value, order, true);
    return {expected, true};
  }
  step(thread);
  if (chosen > 0) --surprises_;
  return {read(thread, location, chosen > 0 ? times[chosen - 1] : history.size() - 1, of_load), false};
}

bool Memory::surprise() {
  if (surprises_ == 0 || choices_.choose(2) == 0) return false;
  --surprises_;
  return true;
}

bool Memory::access(std::size_t thread, PlainAccesses& accesses, bool writes) {
  const View& view = views_[thread];
  for (std::size_t other = 0; other < most_threads; ++other) {
    if (other == thread) continue;
    if (accesses.writes[other] > view.steps[other] || (writes && accesses.reads[other] > view.steps[other])) {
      return false;
    }
  }
  // The access counts as part of the next step: that is the first one that can release it.
  (writes ? accesses.writes : accesses.reads)[thread] = static_cast<std::uint16_t>(view.steps[thread] + 1);
  return true;
}

}  // namespace interleavings
