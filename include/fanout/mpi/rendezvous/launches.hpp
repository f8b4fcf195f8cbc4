// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/collective/run_direct.hpp>
#include <fanout/mpi/rendezvous/launch_order.hpp>
#include <fanout/mpi/rendezvous/rendezvous_note.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// This process's part of collectives that the devices run: those of all ranks, or a send and its recv. Made when the
/// notes fit, so all ranks take part that are named here, unless they fail. The thread of one rank, the leader, starts
/// them for all ranks of this process together. Guarded by RankGroup::Use, but for run() and state().
struct Launch {
  using Kind = RendezvousNote::Kind;
  enum class State : unsigned char { gathers, proposed, runs, over };

  Kind kind = Kind::collectives;  ///< or `send`, for a send and its recv
  std::size_t from = 0;           ///< of a send
  std::size_t to = 0;
  std::vector<std::size_t> missing = {};  ///< ranks of this process whose calls are not here yet
  std::size_t leader = 0;
  std::vector<std::size_t> others = {};  ///< leaders in other processes that have not proposed a turn
  std::vector<backend::RankedCall> calls = {};
  std::optional<LaunchOrder::Place> place = {};
  RendezvousVerdict failure = {};  ///< of all ranks here; valid if it is over
  std::atomic<State> state = State::gathers;

  bool is_over() const noexcept { return state.load(std::memory_order_acquire) == State::over; }
  bool runs() const noexcept { return state.load(std::memory_order_acquire) == State::runs; }

  /// What the leader of `other` says in its turn: the ends of a send propose turns of their own.
  Kind said_by(std::size_t other) const noexcept { return kind == Kind::send && other == to ? Kind::recv : kind; }

  void end(RendezvousVerdict why) noexcept {
    failure = std::move(why);
    place.reset();
    state.store(State::over, std::memory_order_release);
  }

  /// Starts the calls. Called on the leader's thread.
  void run(backend::TransportRanks& direct) noexcept { end(run_direct(direct, calls)); }
};

/// The launches of one call on this process that are not complete: some ranks of this process are missing. Guarded by
/// RankGroup::Use. Borrows the places.
class Launches {
 public:
  /// `here`: the ranks of this process.
  Launches(const RendezvousPlaces& places, const RowRange& here) : places_(places), here_(here) {}
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  /// Adds a rank's calls to the first launch that lacks them. `own`: collectives of all ranks, or one send or recv.
  FANOUT_INLINE std::shared_ptr<Launch> join(std::size_t rank, const std::vector<backend::Collective*>& own);

 private:
  bool is_here(std::size_t rank) const noexcept { return here_.first <= rank && rank < here_.last; }

  FANOUT_INLINE std::shared_ptr<Launch> of_all() const;

  FANOUT_INLINE std::shared_ptr<Launch> between_two(std::size_t from, std::size_t to) const;

  const RendezvousPlaces& places_;
  const RowRange here_;
  std::vector<std::shared_ptr<Launch>> gathering_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/launches.ipp>
#endif
