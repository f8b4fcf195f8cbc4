// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/device_id.hpp>
#include <fanout/fwd.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// A call and the rank that made it.
struct RankedCall {
  std::size_t rank = 0;
  const Collective* call = nullptr;
};

/// Collectives between devices without host memory, as a table of functions. Options::collectives selects them for the
/// shards of a call. `run` gets only calls that fit together and that all their ranks have made.
///
/// 1. `open(devices, ranks)` makes the shared state of the ranks of one call; rank i is on `devices[i]`. Returns null
///    if these devices cannot do it: then all arrays go through host memory. Called once per call, at first need. Two
///    concurrent calls share no state. May throw.
/// 2. `takes(shared, rank, call)` returns true if it can run such a call for a rank, judged by kind, element type and
///    memory. If it takes a collective on some ranks but not on others, all ranks throw.
/// 3. `run(shared, calls, count)` enqueues calls that it takes, of all ranks that make them. Each rank's calls stay in
///    order, and in order with the work of its device. Called on a thread that has entered one of the devices. Does not
///    wait for the devices. May throw; then `abort` is called.
/// 4. `abort(shared)` releases ranks whose devices wait for one that failed. Called from any thread, possibly more than
///    once.
/// 5. `close(shared)` is called when all shards of the call have ended. Their devices may still work.
struct CollectiveOperations {
  void* (*open)(const DeviceId* devices, std::size_t ranks);
  bool (*takes)(void* shared, std::size_t rank, const Collective& call) noexcept;
  void (*run)(void* shared, const RankedCall* calls, std::size_t count);
  void (*abort)(void* shared) noexcept;
  void (*close)(void* shared) noexcept;
};

}}}  // namespace fanout::v0::backend
