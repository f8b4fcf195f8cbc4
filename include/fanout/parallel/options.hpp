// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>

#include <fanout/base/device_id.hpp>
#include <fanout/plan/any_split.hpp>

namespace fanout::inline v0 {

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
};

}  // namespace fanout::inline v0
