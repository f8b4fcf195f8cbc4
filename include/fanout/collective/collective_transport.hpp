// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <span>

#include <fanout/base/device_id.hpp>
#include <fanout/collective/element_type.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/batch_place.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// A collective and the rank that called it.
struct RankedCall {
  std::size_t rank = 0;
  const Collective* call = nullptr;
};

/// The array of one rank in a sum, each of whose elements is multiplied by the weight.
struct WeightedArray {
  const void* data = nullptr;
  MemorySpace space = host_memory;
  double weight = 1;
};

/// A sum of arrays, one of each rank. Borrows them.
struct ResultSum {
  const ElementType* type = nullptr;
  std::size_t count = 0;  ///< elements of each array
  std::span<const WeightedArray> arrays = {};
  std::size_t root = 0;  ///< the rank in the memory of whose array the sum is wanted
  void* to = nullptr;    ///< destination
};

/// The ranks of one call of a model, whose devices run collectives without host memory.
class TransportRanks {
 public:
  TransportRanks(const TransportRanks&) = delete;
  TransportRanks& operator=(const TransportRanks&) = delete;

  /// True if it can run such a collective for a rank, judged by kind, element type and memory. If it takes a collective
  /// on some ranks but not on others, all ranks throw.
  virtual bool takes(std::size_t rank, const Collective& call) const noexcept = 0;

  /// Enqueues collectives that it takes, which fit together, of all ranks that make them. Each rank's collectives stay
  /// in order, and in order with the work of its device. Called on a thread that has entered one of the devices. Does
  /// not wait for the devices. May throw; then `abort` is called. Throws CommunicatorAbandoned, which names the rank,
  /// if a rank failed by itself.
  virtual void run(std::span<const RankedCall> calls) = 0;

  /// Adds results. Called on any thread, after all shards have ended. Waits until the sum is at its destination.
  /// Returns false, with nothing done, if it cannot add such arrays: then the host adds them. Throws what run() throws,
  /// and the failure of a rank.
  virtual bool add_results(const ResultSum& /*sum*/) { return false; }

  /// Releases ranks whose devices wait for one that failed. Called from any thread, possibly more than once.
  virtual void abort() noexcept = 0;

  /// Why this rank's device or its collectives failed, if the ranks were released for that. Null otherwise, and on
  /// ranks that were only released. Does not wait for the devices. Called from any thread.
  virtual std::exception_ptr failure(std::size_t /*rank*/) const noexcept { return nullptr; }

  /// A function that looks for failures of ranks in other processes.
  struct Look {
    void (*at)(void* of) noexcept = nullptr;
    void* of = nullptr;
  };
  /// Called before run() if other processes have ranks, too. The transport calls `look.at(look.of)` from time to time,
  /// until settle() or close(). It does so on a thread of its own, since all others may be waiting for devices.
  /// `look.at` may call abort() and failure().
  virtual void look_also(const Look& /*look*/) {}

  /// Called when the devices of all ranks have done their work. What failure() returns must not change any more.
  virtual void settle() noexcept {}

  /// Called last, when all shards of the call have ended. Their devices may still work. It may destroy the object.
  virtual void close() noexcept = 0;

 protected:
  TransportRanks() = default;
  ~TransportRanks() = default;
};

/// A transport for collectives between devices without host memory. Options::collectives selects it for the shards of a
/// call. Must live as long as the models that use it.
class CollectiveTransport {
 public:
  /// Returns the ranks of one call of a model: rank i is on `devices[i]`. Returns null if these devices cannot do it:
  /// then all arrays go through host memory. Called once per call, at first need. Two calls at the same time share no
  /// ranks. May throw.
  virtual TransportRanks* open(std::span<const DeviceId> devices) const = 0;

  /// True if open_with_others() joins the devices of these processes.
  virtual bool joins(const ProcessRanks& /*processes*/) const noexcept { return false; }

  /// As open(), for a call that processes make together which it joins. Returns the ranks of this process: rank i is on
  /// `devices[i]`, and is rank `place.first_shard + i` of the call. The functions of the result number this process's
  /// ranks from 0; the root of a collective is a rank of the call. All processes of the call make this call at the same
  /// place among their exchanges, also those without devices. If it returns null on a process with devices, it does so
  /// on all. If it throws on one process, it throws on all. By default, returns null.
  virtual TransportRanks* open_with_others(std::span<const DeviceId> /*devices*/,
                                           const detail::BatchPlace& /*place*/) const {
    return nullptr;
  }

 protected:
  ~CollectiveTransport() = default;
};

}}}  // namespace fanout::v0::backend
