// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/rendezvous_state.hpp>

namespace fanout { inline namespace v0 { namespace detail {

bool RendezvousState::poll() {
  bool done = releases == nullptr || (releases->poll(), releases->is_done());
  for (Own& each : own) {
    each.mail.poll();
    done = done && each.mail.is_done();
  }
  return done;
}

}}}  // namespace fanout::v0::detail
