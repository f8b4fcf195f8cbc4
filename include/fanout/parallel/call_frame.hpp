// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout::inline v0 {

/// What a call is made with, besides its inputs.
struct CallSettings {
  Memory target = {};           ///< where the results are gathered
  std::uint64_t seed = 0;       ///< of the random numbers
  std::uint32_t number = 0;     ///< of the call, for the random numbers
  bool rethrow_single = false;  ///< what a single failing replica threw is thrown as it is
};

/// What all shards of one call share.
struct CallFrame : CallSettings {
  explicit CallFrame(const Plan& by, const CallSettings& settings = {}) : CallSettings(settings), plan(by) {}

  const Plan plan;
  OutputBuffers outputs;
};

}  // namespace fanout::inline v0
