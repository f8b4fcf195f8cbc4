// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>

#include <fanout/call/timeout.hpp>

namespace fanout_test {

/// The Timeout that `f` throws, if any.
template <class F>
std::optional<fanout::Timeout> timeout_of(const F& f) {
  try {
    f();
  } catch (const fanout::Timeout& timeout) {
    return timeout;
  }
  return {};
}

}  // namespace fanout_test
