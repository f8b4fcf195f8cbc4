// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/release_mail.hpp>

#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

ReleaseMail::ReleaseMail(MPI_Comm over, const RendezvousPlaces& places, std::size_t process) : over_(over) {
  for (const std::size_t leader : places.leaders()) {
    if (places.process(leader) != process) others_.push_back(static_cast<int>(places.process(leader)));
  }
  tag_ = places.tag_of_processes(RendezvousPlaces::Stream::releases);
  words_.resize(others_.size());
  receives_.assign(others_.size(), MPI_REQUEST_NULL);
  sends_.assign(others_.size(), MPI_REQUEST_NULL);
  arrived_.resize(others_.size());
  for (std::size_t i = 0; i < others_.size(); ++i) {
    check_mpi(MPI_Irecv(&words_[i], 1, MPI_UINT64_T, others_[i], tag_, over_, &receives_[i]), "MPI_Irecv");
  }
}

void ReleaseMail::send(std::uint64_t word) {
  if (has_sent_) return;
  has_sent_ = true;
  word_ = word;
  for (std::size_t i = 0; i < others_.size(); ++i) {
    check_mpi(MPI_Isend(&word_, 1, MPI_UINT64_T, others_[i], tag_, over_, &sends_[i]), "MPI_Isend");
  }
}

std::uint64_t ReleaseMail::poll() {
  int count = 0;
  if (missing() != 0) {
    check_mpi(MPI_Testsome(static_cast<int>(receives_.size()), receives_.data(), &count, arrived_.data(),
                           MPI_STATUSES_IGNORE),
              "MPI_Testsome");
  }
  for (int i = 0; i < count; ++i) {
    const std::uint64_t word = words_[static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)])];
    if (word != 0 && heard_ == 0) heard_ = word;
    ++received_;
  }
  return heard_;
}

bool ReleaseMail::is_done() {
  int done = 0;
  if (missing() != 0 || !has_sent_) return false;
  check_mpi(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

}}}  // namespace fanout::v0::detail
