// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
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
  HostCommunicator(HostRendezvous& rendezvous, std::size_t rank) : rendezvous_(&rendezvous), rank_(rank) {
    if (rank < rendezvous.size()) return;
    throw InvalidArgument(explain({.what = "no such rank",
                                   .where = "HostCommunicator",
                                   .expected = "a rank below " + std::to_string(rendezvous.size()),
                                   .found = std::to_string(rank)}));
  }
  HostCommunicator(HostCommunicator&& other) noexcept
      : CollectiveCalls(other), rendezvous_(std::exchange(other.rendezvous_, nullptr)), rank_(other.rank_) {}
  HostCommunicator(const HostCommunicator&) = delete;
  HostCommunicator& operator=(const HostCommunicator&) = delete;
  ~HostCommunicator() {
    if (rendezvous_ == nullptr) return;
    if (std::uncaught_exceptions() == exceptions_)
      failure_ = nullptr;  // it was caught
    else if (failure_ == nullptr)
      failure_ = std::make_exception_ptr(std::runtime_error("an exception"));
    rendezvous_->leave(rank_, failure_);
  }

  std::size_t rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return rendezvous_->size(); }

  /// Makes the calls together, and returns when they have run. Throws DeviceMismatch for arrays in another memory, and
  /// the errors of HostRendezvous.
  void run(Collective* calls, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (calls[i].from_space == host_memory && calls[i].to_space == host_memory) continue;
      const MemorySpace& other = calls[i].from_space == host_memory ? calls[i].to_space : calls[i].from_space;
      throw DeviceMismatch(explain({.what = "a collective of the host got an array in other memory",
                                    .where = to_string(calls[i]),
                                    .expected = to_string(host_memory),
                                    .found = to_string(other),
                                    .advice = "use a StagedCommunicator"}));
    }
    try {
      rendezvous_->meet(rank_, calls, count);
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }

 private:
  HostRendezvous* rendezvous_;
  std::size_t rank_;
  int exceptions_ = std::uncaught_exceptions();
  std::exception_ptr failure_;  // of its last call that failed
};
static_assert(Communicator<HostCommunicator>);

}}}  // namespace fanout::v0::backend
