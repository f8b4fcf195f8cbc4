// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/transfer/downloads.hpp>

#include <cstring>

#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

Downloads::~Downloads() {
  for (std::size_t i = 0; i < count_ && !finished_; ++i) {
    if (copies_[i].begun != 0) await_quietly(stream_of(copies_[i]));
  }
}

void Downloads::make() {
  bool straight = false;
  for (std::size_t i = 0; i < count_; ++i) straight = begin_pinned(copies_[i]) || straight;
  for (;;) {
    begin_chunks();
    if (taken_ == started_) break;
    finish_oldest();
  }
  for (std::size_t i = 0; i < count_ && straight; ++i) {
    if (i == 0 || copies_[i].streams != copies_[i - 1].streams) stream_of(copies_[i]).synchronize();
  }
  finished_ = true;
}

void Downloads::begin_chunks() {
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < count_ && started_ - taken_ < most_flights; ++i) {
      if (copies_[i].begun < copies_[i].bytes) more = begin_chunk(copies_[i]) || more;
    }
  }
}

bool Downloads::begin_chunk(Download& copy) {
  const Run run = Staging::next_run(copy.begun, copy.bytes);
  Staging& staging = copy.streams->staging();
  // Waits for a chunk only if this thread holds none: see Staging::take().
  Staging::Room room =
      started_ == taken_ ? staging.take(stream_of(copy), run.bytes) : staging.try_take(stream_of(copy), run.bytes);
  if (!room) return false;
  begin(copy, room.data(), run);
  if (!is_one_chunk(copy)) room.done();
  Flight& flight = flights_[started_++ % most_flights];
  flight.room = static_cast<Staging::Room&&>(room);
  flight.run = run;
  flight.copy = &copy;
  return true;
}

void Downloads::finish_oldest() {
  Flight& flight = flights_[taken_++ % most_flights];
  if (is_one_chunk(*flight.copy)) {
    stream_of(*flight.copy).synchronize();
    flight.room.is_over();
  } else {
    flight.room.wait();
  }
  std::memcpy(static_cast<std::byte*>(flight.copy->to) + flight.run.begin, flight.room.data(), flight.run.bytes);
  flight.room = Staging::Room();
}

}}}  // namespace fanout::v0::cuda::detail
