// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/device_id.hpp>
#include <fanout/fwd.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// A call, and the rank that made it.
struct RankedCall {
  std::size_t rank = 0;
  const Collective* call = nullptr;
};

/// A way in which devices pass arrays to each other without the host's memory, as a table of functions: what
/// Options::collectives chooses for the shards of a call. What all ranks have called is known to fit together, and to
/// be called by all, before it is run.
///
/// 1. `open(devices, ranks)` makes what the ranks of one call share, rank i of which is on `devices[i]`; null if these
///    devices cannot: then all goes by way of the host. Once a call, when it is first needed. Two calls at once share
///    nothing. May throw.
/// 2. `takes(shared, rank, call)` says whether it can run such a call for a rank: by kind, element type and memory.
///    What some ranks' arrays could be passed by and others' not is an error on all.
/// 3. `run(shared, calls, count)` runs calls of which it takes each, of all ranks that make them, in the order of each
///    rank's and in order with the work of its device. On a thread that has entered one of the devices. Does not wait
///    for these. May throw; `abort` is called then.
/// 4. `abort(shared)` releases ranks whose devices wait for one that failed. From any thread, more than once.
/// 5. `close(shared)` is called when all shards of the call have ended. Their devices may still work.
struct CollectiveOperations {
  void* (*open)(const DeviceId* devices, std::size_t ranks);
  bool (*takes)(void* shared, std::size_t rank, const Collective& call) noexcept;
  void (*run)(void* shared, const RankedCall* calls, std::size_t count);
  void (*abort)(void* shared) noexcept;
  void (*close)(void* shared) noexcept;
};

}}}  // namespace fanout::v0::backend
