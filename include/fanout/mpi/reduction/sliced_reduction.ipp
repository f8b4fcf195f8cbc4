// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/sliced_reduction.hpp>

#include <algorithm>
#include <cstring>
#include <exception>

namespace fanout { inline namespace v0 { namespace detail {

SlicedReduction::SlicedReduction(const RankGroup& group, std::span<const backend::RankedValue> values)
    : group_(group),
      ranks_(static_cast<std::size_t>(group.size())),
      own_(static_cast<std::size_t>(group.rank())),
      blocks_(values, ranks_),
      room_((blocks_.largest() + boundary - 1) / boundary * boundary) {
  for (const backend::RankedValue& value : values) may_throw_ = may_throw_ || value.fold->may_throw;
  const std::size_t slots = std::min(most_slots, blocks_.rounds());
  const std::size_t rooms = blocks_.any_packed() ? 2 * ranks_ : ranks_;
  counting_.reserve(ranks_);
  memory_ = Storage(backend::Memory{}, slots * rooms * room_);
  for (std::size_t i = 0; i < slots; ++i) {
    auto* const first = static_cast<std::byte*>(memory_.data()) + i * rooms * room_;
    slots_.push_back({Messages(group_.get(), 2 * ranks_), first, first + ranks_ * room_});
  }
}

void SlicedReduction::run(const std::vector<bool>& counts) {
  std::exception_ptr failure;
  const std::size_t rounds = blocks_.rounds();
  for (std::size_t round = 0; round < rounds + 2; ++round) {
    if (round < rounds) send_slices(round);
    if (round >= 1 && round - 1 < rounds) {
      slot(round - 1).messages.wait();
      if (failure == nullptr) failure = RankGroup::exception_of([&] { combine(round - 1, counts); });
      send_result(round - 1);
    }
    if (round >= 2) take_results(round - 2);
  }
  if (may_throw_) group_.agree(failure);
}

void SlicedReduction::send_slices(std::size_t round) {
  Slot& in = slot(round);
  for_each_other([&](std::size_t before, std::size_t after) {
    if (blocks_.has(own_, round)) {
      in.messages.receive(slice_of(in, before), blocks_.of(own_, round).bytes(), before, MessageTag::slices);
    }
    if (blocks_.has(after, round)) {
      const ValueBlock block = blocks_.of(after, round);
      in.messages.send(block.pack(result_of(in, after)), block.bytes(), after, MessageTag::slices);
    }
  });
}

void SlicedReduction::send_result(std::size_t round) {
  Slot& in = slot(round);
  for_each_other([&](std::size_t before, std::size_t after) {
    if (blocks_.has(before, round)) {
      const ValueBlock block = blocks_.of(before, round);
      in.messages.receive(block.place(result_of(in, before)), block.bytes(), before, MessageTag::slice_results);
    }
    if (blocks_.has(own_, round)) {
      const ValueBlock block = blocks_.of(own_, round);
      in.messages.send(block.place(own_result(in)), block.bytes(), after, MessageTag::slice_results);
    }
  });
}

void SlicedReduction::take_results(std::size_t round) {
  Slot& in = slot(round);
  in.messages.wait();
  for_each_other([&](std::size_t before, std::size_t) {
    if (blocks_.has(before, round)) blocks_.of(before, round).unpack(result_of(in, before));
  });
}

void SlicedReduction::combine(std::size_t round, const std::vector<bool>& counts) {
  if (!blocks_.has(own_, round)) return;
  Slot& in = slot(round);
  const ValueBlock block = blocks_.of(own_, round);
  for (const ValuePart& part : block) {
    counting_.clear();
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (!part.fold->counts_empty && !counts[rank]) continue;
      counting_.push_back(rank == own_ ? part.data : slice_of(in, rank) + part.at);
    }
    std::byte* const to = counting_[0];
    part.fold->combine(to, backend::RankElements::in(counting_), part.count);
    if (to != part.data) std::memcpy(part.data, to, part.bytes());
    if (!block.is_packed() || ranks_ == 1) continue;
    std::byte* const sent = own_result(in) + part.at;
    if (to != sent) std::memcpy(sent, to, part.bytes());
  }
}

}}}  // namespace fanout::v0::detail
