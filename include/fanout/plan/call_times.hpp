// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fanout/base/device_id.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

/// The times of one shard, in nanoseconds after its call began, by the clock of its device: began <= forward <=
/// returned <= ended. A shard that throws before `forward` has 0 for `forward`. One that never began has 0 for
/// `thread`.
struct ShardTimes {
  std::int64_t began = 0;       ///< its thread makes the inputs from here on
  std::int64_t forward = 0;     ///< `forward` begins
  std::int64_t returned = 0;    ///< `forward` has returned
  std::int64_t ended = 0;       ///< its work on the device is done
  std::uint64_t bytes_in = 0;   ///< copied to the device's memory; 0 for devices that work in the host's memory
  std::uint64_t bytes_out = 0;  ///< copied from the device's memory, also when the results were gathered
  std::uint32_t thread = 0;     ///< the number of the thread that ran it, as CallTimes::thread
  bool failed = false;          ///< it threw
};

/// The times of one call of a model, in nanoseconds after it began, by the clock of its main device. planned <= joined,
/// and joined + idle <= ended. An asynchronous call whose result is dropped ends with its last shard. Borrows what it
/// points to.
struct CallTimes {
  using Shard = ShardTimes;

  /// Which step of a Pipeline a call is.
  struct Step {
    const char* pass = nullptr;  ///< "forward", "backward" or "weights"; null if it is none
    std::uint32_t stage = 0;
    std::uint32_t micro_batch = 0;
  };

  const Plan* plan = nullptr;         ///< each shard with the device that ran it
  const DeviceId* devices = nullptr;  ///< of the model, by their positions
  std::size_t device_count = 0;
  const ShardTimes* shards = nullptr;  ///< one for each shard of the plan
  std::int64_t began = 0;              ///< nanoseconds of that clock: CLOCK_MONOTONIC, or a time of simulated devices
  std::int64_t planned = 0;            ///< the plan is made, and shards may begin
  std::int64_t joined = 0;             ///< all shards have ended
  std::int64_t idle = 0;               ///< from `joined` until the result of an asynchronous call is asked for
  std::int64_t ended = 0;              ///< the result is gathered
  std::uint32_t number = 0;            ///< of this call of the model
  std::uint32_t thread = 0;            ///< number of the calling thread; the process numbers its threads from 1
  std::uint32_t gatherer = 0;          ///< number of the thread that gathered the result; 0 if none did
  std::uint64_t id = 0;                ///< of this call among the measured calls of the process, from 1
  std::uint64_t outer = 0;             ///< id of the measured call whose `forward` made this call; 0 if none did
  std::uint32_t outer_shard = 0;       ///< of that call
  std::string_view model = {};         ///< the type of the model, as the compiler spells it
  Step step = {};                      ///< if this is a call of a stage of a Pipeline
  bool asynchronous = false;
  bool own_clock = false;  ///< the clock is one of the main device's own
  bool failed = false;     ///< the call threw
};

}}  // namespace fanout::v0
