// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/dispatch/deal.hpp>

#include <cstddef>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

inline bool all_have_clocks(const DeviceTable& devices) noexcept {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].clock.is_own()) return false;
  }
  return true;
}

Deal::Deal(const Plan& blocks, const DeviceTable& devices, const TypedCall& call, const ShardRunner& body)
    : blocks_(blocks),
      call_(call),
      body_(body),
      hands_(devices.size()),
      ran_on_(blocks.size(), [](std::size_t) noexcept { return nobody; }),
      left_(blocks.rows()),
      has_clocks_(all_have_clocks(devices)) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Hand& hand = hands_[blocks[i].device];
    hand.blocks.push_back(i);
    hand.rows += blocks[i].rows.size();
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    hands_[i].takes_no_more = hands_[i].is_empty();
    if (hands_[i].takes_no_more) continue;
    dealers_.add({.rows = {}, .device = i});
    hands_[i].clock = &devices[i].clock;
  }
  working_ = dealers_.size();
}

void Deal::operator()(std::size_t dealer) const noexcept {
  auto& self = const_cast<Deal&>(*this);  // a ForkJoin's body is const; this one is shared by its threads
  if (has_clocks_) return self.run_by_clocks();
  const std::size_t device = dealers_[dealer].device;
  for (std::size_t block = 0; self.take(device, block);) {
    if (!call_.run(block, device) && self.fails()) return;
  }
}

const Plan& Deal::as_run() {
  as_run_ =
      Plan(blocks_.size(), [this](std::size_t i) { return Shard{.rows = blocks_[i].rows, .device = ran_on_[i]}; });
  return as_run_;
}

bool Deal::take(std::size_t device, std::size_t& block) noexcept {
  const ForkSafeLock taking(mutex_);
  if (take_locked(device, block)) return true;
  --working_;
  return false;
}

bool Deal::fails() noexcept {
  const ForkSafeLock counting(mutex_);
  return fails_locked();
}

bool Deal::fails_locked() noexcept {
  if (!blocks_.is_dealt()) return false;  // nobody else would run them
  has_failed_ = true;
  if (working_ == 1) return false;
  --working_;
  return true;
}

bool Deal::take_locked(std::size_t device, std::size_t& block) noexcept {
  Hand& own = hands_[device];
  Hand* from = nullptr;
  // A device that takes over blocks has ended early, so the large ones are for it.
  if (!own.is_empty()) {
    from = &own;
    block = pick(own, blocks_.is_dealt() ? 0.5 * share_of_left(device) : static_cast<double>(left_));
  } else if (blocks_.is_dealt()) {
    for (Hand& hand : hands_) {
      if (hand.is_empty() || (from != nullptr && hand.rows <= from->rows)) continue;
      const std::size_t found = pick(hand, most_for(own));
      if (!has_failed_ && blocks_[found].rows.size() > own.most) continue;
      from = &hand;
      block = found;
    }
  }
  if (from == nullptr) return false;
  ran_on_[block] = device;
  ++from->taken;
  while (!from->is_empty() && ran_on_[from->blocks[from->first]] != nobody) ++from->first;
  ++taken_;
  const std::size_t rows = blocks_[block].rows.size();
  from->rows -= rows;
  left_ -= rows;
  hands_[device].given += rows;
  return true;
}

double Deal::share_of_left(std::size_t device) const noexcept {
  const auto left = static_cast<double>(left_);
  if (hands_[device].given == 0) return 2 * left;
  return left * static_cast<double>(hands_[device].given) / static_cast<double>(blocks_.rows() - left_);
}

double Deal::most_for(const Hand& hand) const noexcept {
  return static_cast<double>(!has_failed_ && hand.most < left_ ? hand.most : left_);
}

std::size_t Deal::pick(const Hand& from, double rows) const noexcept {
  std::size_t last = 0;
  for (std::size_t i = from.first; i < from.blocks.size(); ++i) {
    const std::size_t block = from.blocks[i];
    if (ran_on_[block] != nobody) continue;
    if (static_cast<double>(blocks_[block].rows.size()) <= rows) return block;
    last = block;
  }
  return last;
}

void Deal::run_by_clocks() noexcept {
  const ForkSafeLock dealing(mutex_);
  for (;;) {
    if (taken_ == blocks_.size()) return;
    std::size_t first = nobody;
    Clock::Time earliest = Clock::never;
    for (std::size_t i = 0; i < hands_.size(); ++i) {
      if (hands_[i].takes_no_more) continue;
      const Clock::Time now = hands_[i].clock->now();
      const Clock::Time done = hands_[i].clock->done();
      const Clock::Time free = done > now ? done : now;
      if (first != nobody && free >= earliest) continue;
      earliest = free;
      first = i;
    }
    std::size_t block = 0;
    if (!take_locked(first, block)) {  // until another device fails, the rest is for others
      hands_[first].takes_no_more = true;
      --working_;
    } else if (!call_.run(block, first) && fails_locked()) {
      hands_[first].takes_no_more = true;
    }
  }
}

}}}  // namespace fanout::v0::detail
