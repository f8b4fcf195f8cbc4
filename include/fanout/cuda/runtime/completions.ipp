// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/completions.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

backend::Completion Completions::of(StreamRef stream) {
  Mark* mark = take();
  try {
    stream.record(mark->event);
  } catch (...) {
    give(*mark);
    throw;
  }
  return {&Completions::finish, mark};
}

void Completions::finish(void* what) {
  auto* mark = static_cast<Mark*>(what);
  struct Given {
    Mark* mark;
    ~Given() { mark->home->give(*mark); }
  } const given{mark};
  mark->event.synchronize();
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
