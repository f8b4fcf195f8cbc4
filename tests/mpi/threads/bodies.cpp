// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The bodies of what ranks do without MPI, where the headers leave them out.
#include <fanout/mpi/ranks_of_models.hpp>

#if defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/growing_pause.ipp>
#include <fanout/mpi/group/rank_failures.ipp>
#include <fanout/mpi/group/rank_group.ipp>
#include <fanout/mpi/group/rank_timeouts.ipp>
#include <fanout/mpi/group/timed_exchange.ipp>
#include <fanout/mpi/ranks_of_models.ipp>
#include <fanout/mpi/reduction/collected_values.ipp>
#include <fanout/mpi/reduction/ordered_reduction.ipp>
#include <fanout/mpi/reduction/value_blocks.ipp>
#include <fanout/mpi/rendezvous/collective_exchange.ipp>
#include <fanout/mpi/rendezvous/launch_order.ipp>
#include <fanout/mpi/rendezvous/launches.ipp>
#include <fanout/mpi/rendezvous/mpi_rendezvous.ipp>
#include <fanout/mpi/rendezvous/release_mail.ipp>
#include <fanout/mpi/rendezvous/rendezvous_calls.ipp>
#include <fanout/mpi/rendezvous/rendezvous_mail.ipp>
#include <fanout/mpi/rendezvous/rendezvous_note.ipp>
#include <fanout/mpi/rendezvous/rendezvous_places.ipp>
#include <fanout/mpi/rendezvous/rendezvous_state.ipp>
#endif
