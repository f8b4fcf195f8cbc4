// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <mpi.h>

#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Tells all processes of a call if one of them has released its devices, since a rank has failed or was late: the
/// devices of the others may wait for those. Each process sends one word to each other one with devices: word_of() at
/// once, or 0 when its shards have ended. The caller of each function may use MPI. Borrows all.
class ReleaseMail {
 public:
  /// Why devices were released: this rank has failed or, if `late`, its process waits no more for ranks that are late.
  struct Reason {
    std::size_t culprit;
    bool late;
  };
  static std::uint64_t word_of(const Reason& why) noexcept {
    return std::uint64_t{why.culprit + 1} << 1 | std::uint64_t{why.late};
  }
  /// `word` must not be 0.
  static Reason reason_of(std::uint64_t word) noexcept { return {.culprit = (word >> 1) - 1, .late = (word & 1) != 0}; }

  /// Begins to receive.
  ReleaseMail(MPI_Comm over, const RendezvousPlaces& places, std::size_t process) : over_(over) {
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

  /// Sends this process's word. A second call does nothing.
  void send(std::uint64_t word) {
    if (has_sent_) return;
    has_sent_ = true;
    word_ = word;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      check_mpi(MPI_Isend(&word_, 1, MPI_UINT64_T, others_[i], tag_, over_, &sends_[i]), "MPI_Isend");
    }
  }

  /// Returns the word of a process that has released its devices, or 0. Does not wait.
  std::uint64_t poll() {
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

  /// True if all processes have sent their words, and know that of this one.
  bool is_done() {
    int done = 0;
    if (missing() != 0 || !has_sent_) return false;
    check_mpi(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    return done != 0;
  }

 private:
  std::size_t missing() const noexcept { return others_.size() - received_; }

  MPI_Comm over_;
  int tag_ = 0;
  std::vector<int> others_;
  std::vector<std::uint64_t> words_;  // of the others
  std::vector<MPI_Request> receives_;
  std::vector<MPI_Request> sends_;
  std::vector<int> arrived_;
  std::size_t received_ = 0;
  std::uint64_t word_ = 0;
  std::uint64_t heard_ = 0;
  bool has_sent_ = false;
};

}}}  // namespace fanout::v0::detail
