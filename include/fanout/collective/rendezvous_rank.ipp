// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/rendezvous_rank.hpp>

#include <cstdio>
#include <new>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_second_thread(std::size_t rank) {
  throw Error(explain({.what = "two threads call collectives as one rank at once",
                       .where = Text() << "rank " << rank,
                       .advice = "call them from the thread that runs the rank; while it has buckets, by the "
                                 "communicator that made these"}));
}

RendezvousVerdict RendezvousVerdict::of(Fit fit, const std::string& who, const char* advice) {
  const bool shape = fit == Fit::other_shape;
  return {.what = shape ? RendezvousVerdict::shape : structure,
          .text = explain(
              {.what = shape ? "collectives with arrays of different extents" : "collectives that do not fit together",
               .found = who,
               .advice = advice})};
}

void RendezvousVerdict::raise() const {
  if (what == structure) throw StructureMismatch(text);
  if (what == shape) throw ShapeMismatch(text);
  if (what == abandoned) throw CommunicatorAbandoned(text, culprit);
  if (what == broken) throw Error(text);
  if (what == no_memory) throw std::bad_alloc();
}

void RendezvousRank::enter(backend::Collective* from, std::size_t so_many) noexcept {
  calls = from;
  count = left = so_many;
  inside = true;
  for (std::size_t i = 0; i < count; ++i) calls[i].progress = backend::Collective::Progress::open;
}

void RendezvousRank::retain(const std::exception_ptr& exception) noexcept {
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

RendezvousVerdict RendezvousVerdict::of_rank_that_left(const std::string& who, std::size_t culprit,
                                                       const RendezvousRank& rank) {
  return {
      .what = abandoned,
      .culprit = culprit,
      .text = explain({.what = Text() << who << ", and rank " << culprit << (rank.threw() ? " threw: " : " has left")
                                      << (rank.threw() ? rank.why : ""),
                       .advice = "call collectives on all ranks or on none"})};
}

}}}  // namespace fanout::v0::detail
