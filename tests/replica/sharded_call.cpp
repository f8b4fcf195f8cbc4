// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <thread>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

#include <fanout/fanout.hpp>

#include "support/skip.hpp"

namespace {

/// How many functions have been called and not returned on this thread, or 0 where that is not known.
int frames() {
#if __has_include(<execinfo.h>) && !defined(__OPTIMIZE__)
  std::array<void*, 200> addresses;
  return ::backtrace(addresses.data(), static_cast<int>(addresses.size()));
#else
  return 0;
#endif
}

struct CountFrames {
  std::thread::id caller = std::this_thread::get_id();

  int forward(fanout::View<const float, 1>) const { return std::this_thread::get_id() == caller ? frames() : 0; }
};

}  // namespace

TEST_CASE("at most 12 stack frames lie between a call and forward on the caller's thread") {
  const int before = frames();
  if (before == 0) {
    fanout_test::skip("optimised, or without backtrace()");
    return;
  }
  const fanout::ParallelModel model{CountFrames{}, fanout::host_devices(2)};
  const auto counts = model(fanout::Tensor<float, 1>(2));
  CHECK(counts[0] > before);
  CHECK(counts[0] - before - 1 <= 12);
}
