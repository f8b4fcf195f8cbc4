// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/completions.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

backend::Completion Completions::of(StreamRef stream, Parcel* parcel) {
  Mark* mark = nullptr;
  try {
    if (parcel != nullptr) parcel->fetch();
    mark = take();
  } catch (...) {
    if (parcel != nullptr) release_after(stream, *parcel);
    throw;
  }
  mark->is_recorded = false;
  mark->stream = stream;
  mark->parcel = parcel;
  more_work_comes();  // as far as the completion before is concerned
  newest_.store(mark, fanout::detail::MemoryOrder::release);
  return {&Completions::finish, mark};
}

void Completions::record_newest() noexcept {
  const fanout::detail::ForkSafeLock recording(mutex_);
  Mark* const mark = newest_.exchange(nullptr, fanout::detail::MemoryOrder::acq_rel);
  if (mark == nullptr) return;
  try {
    mark->stream.record(mark->event);
    mark->is_recorded = true;
  } catch (...) {  // then finish() waits for the stream
  }
}

void Completions::finish(void* what) {
  auto* mark = static_cast<Mark*>(what);
  struct Given {
    Mark* mark;
    ~Given() {
      if (mark->parcel != nullptr) mark->parcel->release();
      mark->home->give(*mark);
    }
  } const given{mark};
  try {
    if (mark->home->is_recorded(*mark)) {
      mark->event.synchronize();
    } else {
      mark->stream.synchronize();
    }
  } catch (...) {
    if (mark->parcel != nullptr) release_after(mark->stream, *std::exchange(mark->parcel, nullptr));
    throw;
  }
  if (mark->parcel != nullptr) mark->parcel->deliver();
}

void Completions::release_after(StreamRef stream, Parcel& parcel) noexcept {
  await_quietly(stream);
  parcel.release();
}

bool Completions::is_recorded(Mark& mark) noexcept {
  const fanout::detail::ForkSafeLock looking(mutex_);
  Mark* newest = &mark;
  newest_.compare_exchange_strong(newest, nullptr, fanout::detail::MemoryOrder::relaxed);  // it needs no event any more
  return mark.is_recorded;
}

Completions::Mark* Completions::take() {
  pending_.fetch_add(1, fanout::detail::MemoryOrder::relaxed);
  {
    const fanout::detail::ForkSafeLock taking(mutex_);
    if (free_ != nullptr) return std::exchange(free_, free_->next);
  }
  return new Mark{this};
}

}}}  // namespace fanout::v0::cuda::detail
