// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/output_buffer.hpp>

#include <cstddef>
#include <cstdint>

#include <sched.h>

namespace fanout { inline namespace v0 { namespace detail {

OutputBuffer* OutputBuffer::make_for_all(const backend::Memory& memory, std::size_t rows, std::size_t row_bytes) {
  const auto allocate = memory.operations->fresh->allocate_for_all;
  if (allocate == nullptr) return new OutputBuffer(memory, rows, row_bytes);
  const std::size_t bytes = checked_extents(1, Extents<2>{rows, row_bytes}).size();
  void* const data = bytes == 0 ? nullptr : allocate(memory.space, bytes);
  return new OutputBuffer(Storage({memory.space, memory.operations->fresh}, data, bytes, nullptr), rows, row_bytes,
                          nullptr);
}

bool OutputBuffers::have_failed() const noexcept {
  for (const State& state : states_) {
    if (state.load(MemoryOrder::relaxed) == failed) return true;
  }
  const OutputBuffers* const next = next_.load(MemoryOrder::acquire);
  return next != nullptr && next->have_failed();
}

Storage OutputBuffers::take_target(std::size_t rows, std::size_t row_bytes) {
  for (std::size_t n = 0; n < few && n < target_count_; ++n) {
    if (states_[n].load(MemoryOrder::relaxed) != made && fits(n, rows, row_bytes)) {
      return get(n, rows, row_bytes).buffer->take();
    }
  }
  return {};
}

void OutputBuffers::drop_few() noexcept {
  const std::size_t asked_for = others_.load(MemoryOrder::relaxed) ? few : 1;
  for (std::size_t n = 0; n < asked_for; ++n) {
    if (states_[n].load(MemoryOrder::relaxed) == made) few_[n].buffer->release();
  }
}

void OutputBuffers::drop_more() noexcept { delete next_.load(MemoryOrder::relaxed); }

void OutputBuffers::make(std::size_t n, std::size_t rows, std::size_t row_bytes) {
  Place& place = few_[n];
  Atomic<std::uint16_t>& state = states_[n];
  std::uint16_t seen = none;
  for (int turn = 0; !state.compare_exchange_strong(seen, being_made(), MemoryOrder::acquire); ++turn) {
    if (seen == made) return;
    if (seen != being_made()) continue;
    // The thread that makes it waits only for memory.
    turn < 64 ? pause() : static_cast<void>(::sched_yield());
    seen = none;
  }
  if (n != 0) others_.store(true, MemoryOrder::relaxed);
  try {
    OutputBuffer* made_there = source_ == nullptr ? nullptr : source_->make(*source_, n, rows, row_bytes);
    place.buffer = made_there != nullptr      ? made_there
                   : fits(n, rows, row_bytes) ? new OutputBuffer(memory(), targets_[n])
                                              : OutputBuffer::make_for_all(memory(), rows, row_bytes);
  } catch (...) {
    state.store(failed, MemoryOrder::release);
    throw;
  }
  place.first = place.buffer->row(0);
  place.row_bytes = place.buffer->row_bytes();
  state.store(made, MemoryOrder::release);
}

OutputBuffers& OutputBuffers::next() {
  OutputBuffers* next = next_.load(MemoryOrder::acquire);
  if (next == nullptr) {
    auto* more = new OutputBuffers(memory());
    if (target_count_ > few) more->write_to(targets_ + few, target_count_ - few);
    if (next_.compare_exchange_strong(next, more, MemoryOrder::acq_rel)) {
      next = more;
    } else {
      delete more;
    }
  }
  return *next;
}

const OutputBuffers::Place& OutputBuffers::get_more(std::size_t n, std::size_t rows, std::size_t row_bytes) {
  return next().get(n - few, rows, row_bytes);
}

}}}  // namespace fanout::v0::detail
