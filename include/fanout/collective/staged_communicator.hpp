// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/collective/communicator.hpp>
#include <fanout/collective/host_communicator.hpp>
#include <fanout/collective/host_rendezvous.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Calls whose arrays lie in any memory, with host memory in their place. What they read is copied there by the
/// constructor, and what they write is copied back by finish(). Arrays in host memory stay where they are, and direct
/// calls as they are.
class StagedCalls {
 public:
  StagedCalls(backend::Collective* calls, std::size_t count, std::size_t rank, std::size_t ranks) : rank_(rank) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!calls[i].direct) stage(calls[i], ranks);
    }
  }

  /// Copies results to where they belong. When the calls have run.
  void finish() {
    for (const Array& array : staged_) {
      if (array.written)
        backend::transfer(backend::memory_of(array.space), array.original, host_memory, array.here.data(), array.bytes);
    }
  }

 private:
  struct Array {
    void* original;
    MemorySpace space;
    Storage here;
    std::size_t bytes;
    bool written;
  };

  void stage(backend::Collective& call, std::size_t ranks) {
    const bool in_place = call.from == call.to && call.from_bytes(ranks) == call.to_bytes(ranks);
    const bool reads = call.reads(rank_) && !(call.from_space == host_memory);
    const bool writes = call.writes(rank_) && !(call.to_space == host_memory);
    if (reads || (in_place && writes)) {
      void* const original = const_cast<void*>(call.from);  // written only if it is also what the call writes
      Array& array = add(original, call.from_space, call.from_bytes(ranks), in_place && writes);
      if (reads) backend::transfer(backend::Memory{}, array.here.data(), array.space, original, array.bytes);
      call.from = array.here.data();
      if (in_place) call.to = array.here.data();
    }
    if (writes && !in_place) call.to = add(call.to, call.to_space, call.to_bytes(ranks), true).here.data();
    call.from_space = call.to_space = host_memory;
  }

  Array& add(void* original, const MemorySpace& space, std::size_t bytes, bool written) {
    staged_.push_back({original, space, Storage(backend::Memory{}, bytes), bytes, written});
    return staged_.back();
  }

  std::size_t rank_;
  std::vector<Array> staged_;
};

}  // namespace detail

namespace backend {

/// A rank that is a thread of this process, with arrays in any memories: those that are not in host memory are copied
/// there, passed on as a HostCommunicator does, and copied back, by MemoryOperations::transfer, in order with the work
/// of the devices that own them. For mixes of devices, and for kinds that have nothing better.
class StagedCommunicator : public CollectiveCalls<StagedCommunicator> {
 public:
  /// As HostCommunicator. All ranks of one rendezvous may be of either kind.
  StagedCommunicator(HostRendezvous& rendezvous, std::size_t rank) : ranks_(rendezvous, rank) {}

  std::size_t rank() const noexcept { return ranks_.rank(); }
  std::size_t size() const noexcept { return ranks_.size(); }

  /// Makes calls, which start together. Throws what the memories' operations throw, and what HostRendezvous says.
  void run(Collective* calls, std::size_t count) {
    detail::StagedCalls staged(calls, count, rank(), size());
    ranks_.run(calls, count);
    staged.finish();
  }

 private:
  HostCommunicator ranks_;
};
static_assert(Communicator<StagedCommunicator>);

}  // namespace backend

}}  // namespace fanout::v0
