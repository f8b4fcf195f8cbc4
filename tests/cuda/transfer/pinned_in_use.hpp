// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <thread>

#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/pinned.hpp>

#include "cuda/gpus.hpp"

namespace fanout_test {

/// True if a pinned tensor that a GPU uses is released only after the GPU's work. `make()` makes the tensor.
template <class Make>
bool release_waits(const Make& make) {
  const fanout::cuda::Stream stream(0);
  Barrier barrier;
  bool done = false;
  auto work = [&done] { done = true; };
  std::thread opener;
  {
    const auto tensor = make();
    CHECK(fanout::cuda::detail::pinned_blocks().use(tensor.data(), 4, stream));
    call_in(stream, barrier);
    call_in(stream, work);
    opener = std::thread([&barrier] { barrier.open(); });
  }
  const bool waited = done;
  opener.join();
  return waited;
}

}  // namespace fanout_test
