// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// As <fanout/source.hpp>, for programs that include <fanout/mpi.hpp>: the bodies of the room `mpi`.

#include <fanout/base/requirements.hpp>

#if !defined(FANOUT_SEPARATE_COMPILATION)
#error "fanout: a source.hpp is for programs that define FANOUT_SEPARATE_COMPILATION in all their files"
#endif

#include <fanout/mpi/group/growing_pause.ipp>
#include <fanout/mpi/group/mpi_error.ipp>
#include <fanout/mpi/group/mpi_mail.ipp>
#include <fanout/mpi/group/rank_failures.ipp>
#include <fanout/mpi/group/rank_group.ipp>
#include <fanout/mpi/group/rank_lost.ipp>
#include <fanout/mpi/group/rank_timeouts.ipp>
#include <fanout/mpi/group/thread_level.ipp>
#include <fanout/mpi/group/timed_communicator.ipp>
#include <fanout/mpi/group/timed_exchange.ipp>
#include <fanout/mpi/node_share.ipp>
#include <fanout/mpi/ranks.ipp>
#include <fanout/mpi/ranks_of_models.ipp>
#include <fanout/mpi/ranks_options.ipp>
#include <fanout/mpi/reduction/collected_values.ipp>
#include <fanout/mpi/reduction/library_reduction.ipp>
#include <fanout/mpi/reduction/mpi_numbers.ipp>
#include <fanout/mpi/reduction/ordered_reduction.ipp>
#include <fanout/mpi/reduction/reduced_message.ipp>
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
