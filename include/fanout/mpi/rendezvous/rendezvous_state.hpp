// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/mpi/rendezvous/release_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The messages of an MpiRendezvous: the mail may write into this until all ranks have left.
struct RendezvousState {
  /// A rank of this process.
  struct Own {
    Own(const RankMail& over, const RendezvousPlaces& places, std::size_t rank) : mail(over, places, rank) {}

    RendezvousMail mail;
    std::exception_ptr failure;  // what ended its calls, and ends all later ones
    std::atomic<bool> inside{false};
    std::atomic<bool> gone{false};
  };

  RendezvousState(const RankMail& over, RendezvousPlaces with, std::size_t process)
      : places(std::move(with)), here(places.ranks_of(process)) {
    for (const std::size_t rank : here) own.emplace_back(over, places, rank);
  }

  Own& of(std::size_t rank) noexcept { return own[rank - here.first]; }

  /// True if all ranks of all processes have left, and know that those of this process have. Does not wait. The caller
  /// may use MPI.
  FANOUT_INLINE bool poll();

  const RendezvousPlaces places;
  const RowRange here;  // the ranks of this process
  std::deque<Own> own;
  std::unique_ptr<ReleaseMail> releases;  // null unless devices run collectives
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/rendezvous_state.ipp>
#endif
