// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/ordered_reduction.hpp>

#include <algorithm>

namespace fanout { inline namespace v0 { namespace detail {

OrderedReduction::OrderedReduction(const RankGroup& group, std::span<const backend::RankedValue> values)
    : group_(group),
      ranks_(static_cast<std::size_t>(group.size())),
      own_(static_cast<std::size_t>(group.rank())),
      is_whole_(are_few(values)),
      blocks_(values, is_whole_ ? 1 : ranks_),
      room_((blocks_.largest() + boundary - 1) / boundary * boundary) {
  for (const backend::RankedValue& value : values) may_throw_ = may_throw_ || value.fold->may_throw;
  const std::size_t slots = is_whole_ ? 0 : std::min(most_slots, blocks_.rounds());
  const std::size_t rooms = blocks_.any_packed() ? 2 * ranks_ : ranks_;
  counting_.reserve(ranks_);
  memory_ = Storage(backend::Memory{}, (is_whole_ ? ranks_ : slots * rooms) * room_);
  for (std::size_t i = 0; i < slots; ++i) {
    auto* const first = static_cast<std::byte*>(memory_.data()) + i * rooms * room_;
    slots_.push_back({Messages(group_.mail(), 2 * ranks_), first, first + ranks_ * room_});
  }
}

bool OrderedReduction::are_few(std::span<const backend::RankedValue> values) noexcept {
  std::size_t bytes = 0;
  for (const backend::RankedValue& value : values) {
    if (value.count > few) return false;
    bytes += value.count * value.fold->element_size;
    if (bytes > few) return false;
  }
  return bytes != 0;
}

void OrderedReduction::run(const std::vector<bool>& counts) {
  const std::exception_ptr failure = is_whole_ ? run_whole(counts) : run_slices(counts);
  if (may_throw_) group_.agree(failure);
}

std::exception_ptr OrderedReduction::run_whole(const std::vector<bool>& counts) {
  auto* const rooms = static_cast<std::byte*>(memory_.data());  // first that of this rank
  const ValueBlock block = blocks_.of(0, 0);
  for (const ValuePart& part : block) std::memcpy(rooms + part.at, part.data, part.bytes());
  group_.all_gather(rooms, room_);
  return RankGroup::exception_of([&] {
    for (const ValuePart& part : block) {
      combine(part, counts,
              [&](std::size_t rank) { return rooms + (rank + ranks_ - own_) % ranks_ * room_ + part.at; });
    }
  });
}

std::exception_ptr OrderedReduction::run_slices(const std::vector<bool>& counts) {
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
  return failure;
}

void OrderedReduction::send_slices(std::size_t round) {
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

void OrderedReduction::send_result(std::size_t round) {
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

void OrderedReduction::take_results(std::size_t round) {
  Slot& in = slot(round);
  in.messages.wait();
  for_each_other([&](std::size_t before, std::size_t) {
    if (blocks_.has(before, round)) blocks_.of(before, round).unpack(result_of(in, before));
  });
}

void OrderedReduction::combine(std::size_t round, const std::vector<bool>& counts) {
  if (!blocks_.has(own_, round)) return;
  Slot& in = slot(round);
  const ValueBlock block = blocks_.of(own_, round);
  for (const ValuePart& part : block) {
    const std::byte* const to = combine(
        part, counts, [&](std::size_t rank) { return rank == own_ ? part.data : slice_of(in, rank) + part.at; });
    if (!block.is_packed() || ranks_ == 1) continue;
    std::byte* const sent = own_result(in) + part.at;
    if (to != sent) std::memcpy(sent, to, part.bytes());
  }
}

}}}  // namespace fanout::v0::detail
