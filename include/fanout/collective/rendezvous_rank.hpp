// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/host_collective.hpp>

namespace fanout { inline namespace v0 { namespace detail {

struct RendezvousRank;

[[noreturn]] inline void refuse_second_thread(std::size_t rank) {
  throw Error(explain({.what = "two threads call collectives as one rank at once",
                       .where = "rank " + std::to_string(rank),
                       .advice = "call them from the thread that runs the rank; while it has buckets, by the "
                                 "communicator that made these"}));
}

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
  static RendezvousVerdict of(Fit fit, const std::string& who,
                              const char* advice = "call the same ones on all ranks, in the same order") {
    const bool shape = fit == Fit::other_shape;
    return {.what = shape ? RendezvousVerdict::shape : structure,
            .text = explain({.what = shape ? "collectives with arrays of different extents"
                                           : "collectives that do not fit together",
                             .found = who,
                             .advice = advice})};
  }
  static RendezvousVerdict of_rank_that_left(const std::string& who, std::size_t culprit, const RendezvousRank& rank);

  /// Throws the exception for this reason; nothing if it is `none`.
  void raise() const {
    if (what == structure) throw StructureMismatch(text);
    if (what == shape) throw ShapeMismatch(text);
    if (what == abandoned) throw CommunicatorAbandoned(text, culprit);
    if (what == broken) throw Error(text);
    if (what == no_memory) throw std::bad_alloc();
  }
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

  void enter(backend::Collective* from, std::size_t so_many) noexcept {
    calls = from;
    count = left = so_many;
    inside = true;
    for (std::size_t i = 0; i < count; ++i) calls[i].progress = backend::Collective::Progress::open;
  }
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
  void retain(const std::exception_ptr& exception) noexcept {
    const char* text = "an exception that is no std::exception";
    try {
      std::rethrow_exception(exception);
    } catch (const CommunicatorAbandoned& released) {
      culprit = released.rank();
      return;
    } catch (const std::exception& thrown) {
      std::snprintf(why, sizeof why, "%s", thrown.what());
      return;
    } catch (...) {
    }
    std::snprintf(why, sizeof why, "%s", text);
  }
  bool threw() const noexcept { return why[0] != '\0'; }

  /// `rank 1 called barrier`.
  static std::string text_of(std::size_t rank, const backend::Collective& call) {
    return "rank " + std::to_string(rank) + " called " + to_string(call);
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

inline RendezvousVerdict RendezvousVerdict::of_rank_that_left(const std::string& who, std::size_t culprit,
                                                              const RendezvousRank& rank) {
  const std::string text = rank.threw() ? std::string("threw: ") + rank.why : "has left";
  return {.what = abandoned,
          .culprit = culprit,
          .text = explain({.what = who + ", and rank " + std::to_string(culprit) + " " + text,
                           .advice = "call collectives on all ranks or on none"})};
}

}}}  // namespace fanout::v0::detail
