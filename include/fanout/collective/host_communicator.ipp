// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/host_communicator.hpp>

#include <stdexcept>
#include <string>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace backend {

HostCommunicator::HostCommunicator(HostRendezvous& rendezvous, std::size_t rank)
    : rendezvous_(&rendezvous), rank_(rank) {
  if (rank < rendezvous.size()) return;
  throw InvalidArgument(explain({.what = "no such rank",
                                 .where = "HostCommunicator",
                                 .expected = detail::Text() << "a rank below " << rendezvous.size(),
                                 .found = detail::Text() << rank}));
}

HostCommunicator::~HostCommunicator() {
  if (rendezvous_ == nullptr) return;
  if (std::uncaught_exceptions() == exceptions_)
    failure_ = nullptr;  // it was caught
  else if (failure_ == nullptr)
    failure_ = std::make_exception_ptr(std::runtime_error("an exception"));
  rendezvous_->leave(rank_, failure_);
}

void HostCommunicator::run(Collective* calls, std::size_t count) {
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

}}}  // namespace fanout::v0::backend
