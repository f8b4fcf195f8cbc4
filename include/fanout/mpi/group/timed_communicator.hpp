// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>
#include <memory>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The communicator of the TimedExchanges of all groups over one communicator of the user, whose attribute it is. A
/// rank that came too late never receives what was sent to it, and may not know of that. MPI could give the place of a
/// freed communicator to another one, which would then receive it, and Open MPI hangs if only some ranks free one. So
/// this one is never freed.
struct TimedCommunicator {
  MPI_Comm over = MPI_COMM_NULL;

  /// The tag of the next group: all ranks make groups in the same order. Messages of another group are never received.
  int next_tag(int largest) noexcept { return static_cast<int>(groups++ % (static_cast<std::uint64_t>(largest) + 1)); }

  /// That of the user's communicator. All its ranks call this together. The first call takes over `memory`. Throws
  /// MpiError.
  FANOUT_INLINE static TimedCommunicator& of(MPI_Comm users, std::unique_ptr<TimedCommunicator> memory);

 private:
  std::uint64_t groups = 0;

  FANOUT_INLINE static int make_key();
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/timed_communicator.ipp>
#endif
