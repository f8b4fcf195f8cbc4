// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/collective/communicator.hpp>
#include <fanout/collective/host_communicator.hpp>
#include <fanout/collective/host_rendezvous.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Stages calls through host memory. The constructor copies what the calls read to the host, and finish() copies back
/// what they wrote. Arrays in host memory and direct calls are left alone.
class StagedCalls {
 public:
  StagedCalls(backend::Collective* calls, std::size_t count, std::size_t rank, std::size_t ranks) : rank_(rank) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!calls[i].direct) stage(calls[i], ranks);
    }
  }

  /// Copies the results back. Call it when the calls have run.
  FANOUT_INLINE void finish();

 private:
  struct Array {
    void* original;
    MemorySpace space;
    Storage here;
    std::size_t bytes;
    bool written;
  };

  FANOUT_INLINE void stage(backend::Collective& call, std::size_t ranks);

  Array& add(void* original, const MemorySpace& space, std::size_t bytes, bool written) {
    staged_.push_back({original, space, Storage(backend::Memory{}, bytes), bytes, written});
    return staged_.back();
  }

  std::size_t rank_;
  std::vector<Array> staged_;
};

}  // namespace detail

namespace backend {

/// A rank that is a thread of this process, with arrays in any memory. Arrays outside of host memory are copied to the
/// host, passed on by a HostCommunicator, and copied back. MemoryOperations::transfer copies in order with the work of
/// the devices that own the arrays. For mixed devices, and for kinds without device collectives.
class StagedCommunicator : public CollectiveCalls<StagedCommunicator> {
 public:
  /// As for HostCommunicator. The ranks of one rendezvous may be of either kind.
  StagedCommunicator(HostRendezvous& rendezvous, std::size_t rank) : ranks_(rendezvous, rank) {}

  std::size_t rank() const noexcept { return ranks_.rank(); }
  std::size_t size() const noexcept { return ranks_.size(); }

  /// Makes the calls together, and returns when they have run. Throws the errors of HostRendezvous, and those of the
  /// memories' operations.
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

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/staged_communicator.ipp>
#endif
