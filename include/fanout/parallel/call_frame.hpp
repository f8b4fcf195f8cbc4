// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout::inline v0 {

/// What a call is made with, besides its inputs.
struct CallSettings {
  Memory target = {};                     ///< where the results are gathered
  const OutputTarget* targets = nullptr;  ///< the caller's own memory for outputs, in the order in which shards ask
  std::size_t target_count = 0;
  int axis = 0;                 ///< on which arrays are concatenated that do not choose for themselves
  std::uint64_t seed = 0;       ///< of the random numbers
  std::uint32_t number = 0;     ///< of the call, for the random numbers
  bool rethrow_single = false;  ///< what a single failing replica threw is thrown as it is
};

/// What all shards of one call share.
struct CallFrame : CallSettings {
  explicit CallFrame(const Plan& by, const CallSettings& settings = {}) : CallSettings(settings), plan(by) {
    outputs.write_to(targets, target_count);
  }

  const Plan plan;
  OutputBuffers outputs;
};

}  // namespace fanout::inline v0
