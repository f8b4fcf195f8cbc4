// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: all_gather and reduce_scatter take two arrays; for those of a tree, call them in a group
#include <tuple>
#include <vector>

#include <fanout/collective/host_communicator.hpp>

int main() {
  fanout::backend::HostRendezvous rendezvous(1);
  fanout::backend::HostCommunicator ranks(rendezvous, 0);
  std::tuple from{std::vector<float>(2)};
  std::vector<float> to(2);
#ifdef FANOUT_CONTROL
  ranks.all_gather(std::get<0>(from), to);
#else
  ranks.all_gather(from, to);
#endif
}
