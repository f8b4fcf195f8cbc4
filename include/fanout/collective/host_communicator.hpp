// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/collective/communicator.hpp>
#include <fanout/collective/host_rendezvous.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// A rank that is a thread of this process, with arrays in host memory:
///
///     fanout::backend::HostRendezvous rendezvous(2);
///     ... // on each of two threads
///     fanout::backend::HostCommunicator ranks(rendezvous, rank);
///     ranks.all_reduce(x);
///
/// A call returns when it has run. A call that can never run throws: see HostRendezvous. The destructor leaves the
/// rendezvous, which releases the ranks that wait for this one.
class HostCommunicator : public CollectiveCalls<HostCommunicator> {
 public:
  /// Borrows the rendezvous. Each rank must have one communicator. Throws InvalidArgument for a rank that the
  /// rendezvous does not have.
  FANOUT_INLINE HostCommunicator(HostRendezvous& rendezvous, std::size_t rank);
  HostCommunicator(HostCommunicator&& other) noexcept
      : CollectiveCalls(other), rendezvous_(std::exchange(other.rendezvous_, nullptr)), rank_(other.rank_) {}
  HostCommunicator(const HostCommunicator&) = delete;
  HostCommunicator& operator=(const HostCommunicator&) = delete;
  FANOUT_INLINE ~HostCommunicator();

  std::size_t rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return rendezvous_->size(); }

  /// Makes the calls together, and returns when they have run. Throws DeviceMismatch for arrays in another memory, and
  /// the errors of HostRendezvous.
  FANOUT_INLINE void run(Collective* calls, std::size_t count);

 private:
  HostRendezvous* rendezvous_;
  std::size_t rank_;
  int exceptions_ = std::uncaught_exceptions();
  std::exception_ptr failure_;  // of its last call that failed
};
static_assert(Communicator<HostCommunicator>);

}}}  // namespace fanout::v0::backend

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/host_communicator.ipp>
#endif
