// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>

#include <fanout/base/any_function.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/fwd.hpp>
#include <fanout/plan/any_split.hpp>

namespace fanout { inline namespace v0 {

/// How a ParallelModel works; every option has a default: `ParallelModel{m, devices, Options{.seed = 7}}`.
struct Options {
  /// In whose memory results are gathered; the main device's if not set. Any host device stands for the host's memory.
  std::optional<DeviceId> output = {};
  /// The axis of arrays, in and out, whose indices are the rows; the last one is -1. For one array alone there are
  /// split<Axis>(x) and concat<Axis>(x).
  int axis = 0;
  /// How rows are shared out.
  AnySplit split = {};
  /// Keys the random numbers of ctx.random().
  std::uint64_t seed = 0;
  /// If exactly one replica throws in a call, throw what it threw and not a ReplicaError.
  bool rethrow_single = false;
  /// How long a call may take: `.deadline = std::chrono::milliseconds(50)`. After that ctx.stop_requested() is true;
  /// the call waits for all shards nevertheless, and throws a Timeout if one was late.
  Duration deadline = Duration::forever();
  /// Called for each shard that is late, once, by the thread that waits for the call: at the deadline, or when that
  /// thread is done with a shard of its own. So from several threads if these call the model. What it throws is
  /// dropped.
  detail::AnyFunction<void(const LateShard&)> late = {};
  /// How ctx.communicator() passes arrays that lie in devices' own memories, such as nccl_collectives(); by way of the
  /// host's memory if not set.
  const backend::CollectiveOperations* collectives = nullptr;
};

}}  // namespace fanout::v0
