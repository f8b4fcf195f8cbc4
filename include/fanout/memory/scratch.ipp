// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/scratch.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void Scratch::release() noexcept {
  while (kept_ != nullptr) {
    Kept* const last = kept_;
    kept_ = last->before;
    delete last;
  }
  release_memory();
}

}}}  // namespace fanout::v0::detail
