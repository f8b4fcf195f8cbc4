// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a collective takes arrays (tensors, views, vectors, spans), numbers, and trees of these
#include <string>
#include <tuple>

#include <fanout/collective/host_communicator.hpp>

int main() {
  fanout::backend::HostRendezvous rendezvous(1);
  fanout::backend::HostCommunicator ranks(rendezvous, 0);
#ifdef FANOUT_CONTROL
  std::tuple<int> tree{1};
#else
  std::tuple<int, std::string> tree{1, "one"};
#endif
  ranks.broadcast(tree);
}
