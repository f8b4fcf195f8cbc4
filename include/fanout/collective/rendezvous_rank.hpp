// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/text.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/host_collective.hpp>

namespace fanout { inline namespace v0 { namespace detail {

struct RendezvousRank;

[[noreturn]] FANOUT_INLINE void refuse_second_thread(std::size_t rank);

/// The reason why a rank's calls in a HostRendezvous cannot run.
struct RendezvousVerdict {
  enum What : unsigned char { none, structure, shape, abandoned, broken, no_memory };

  What what = none;
  std::size_t culprit = 0;
  std::string text = {};

  /// Returns `make()`, or `no_memory` if that throws: a rank that others wait for must not leave by an exception.
  template <class Make>
  static RendezvousVerdict made_by(const Make& make) noexcept {
    try {
      return make();
    } catch (...) {
      return {.what = no_memory};
    }
  }

  /// `who` is text that says what each rank called.
  FANOUT_INLINE static RendezvousVerdict of(Fit fit, const std::string& who,
                                            const char* advice = "call the same ones on all ranks, in the same order");
  FANOUT_INLINE static RendezvousVerdict of_rank_that_left(const std::string& who, std::size_t culprit,
                                                           const RendezvousRank& rank);

  /// Throws the exception for this reason; nothing if it is `none`.
  FANOUT_INLINE void raise() const;
};

/// One rank of a HostRendezvous: the calls that it waits in, and if it has left.
struct RendezvousRank {
  backend::Collective* calls = nullptr;
  std::size_t count = 0;
  std::size_t left = 0;    // number of calls that have not run
  std::size_t moving = 0;  // number of calls whose arrays a thread is copying
  bool inside = false;
  bool worked = false;  // has done its part of the round
  bool gone = false;
  std::size_t culprit = 0;  // if it is gone: the rank that caused it, itself or one that it waited for
  char why[200] = {};       // text of the exception that it threw; empty if none
  RendezvousVerdict verdict;

  FANOUT_INLINE void enter(backend::Collective* from, std::size_t so_many) noexcept;
  void finish(backend::Collective& call) noexcept {
    call.progress = backend::Collective::Progress::done;
    --left;
  }

  /// Its first open call that all ranks make, or the next one behind `after`; null if there is none.
  backend::Collective* next_of_all(const backend::Collective* after = nullptr) const noexcept {
    return find([](const backend::Collective& call) { return !call.is_between_two(); }, after);
  }
  /// Its next open send to that rank, or null.
  backend::Collective* next_sent_to(std::size_t rank) const noexcept {
    return find([rank](const backend::Collective& call) {
      return call.kind == backend::Collective::Kind::send && call.root == rank;
    });
  }
  backend::Collective* next_send() const noexcept {
    return find([](const backend::Collective& call) { return call.kind == backend::Collective::Kind::send; });
  }
  backend::Collective* first_open() const noexcept {
    return find([](const backend::Collective&) { return true; });
  }

  /// Notes the exception by which the rank left. Allocates nothing.
  FANOUT_INLINE void retain(const std::exception_ptr& exception) noexcept;
  bool threw() const noexcept { return why[0] != '\0'; }

  /// `rank 1 called barrier`.
  static std::string text_of(std::size_t rank, const backend::Collective& call) {
    return Text() << "rank " << rank << " called " << call;
  }

 private:
  template <class Wanted>
  backend::Collective* find(const Wanted& wanted, const backend::Collective* after = nullptr) const noexcept {
    for (std::size_t i = after == nullptr ? 0 : static_cast<std::size_t>(after - calls) + 1; i < count && inside; ++i) {
      // In this order: other threads may write the progress of calls that are not wanted.
      if (wanted(calls[i]) && calls[i].progress == backend::Collective::Progress::open) return &calls[i];
    }
    return nullptr;
  }
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/rendezvous_rank.ipp>
#endif
