// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: this collective writes into its argument, but the argument is const
#include <vector>

#include <fanout/collective/host_communicator.hpp>

int main() {
  fanout::backend::HostRendezvous rendezvous(1);
  fanout::backend::HostCommunicator ranks(rendezvous, 0);
  std::vector<float> elements(2);
#ifdef FANOUT_CONTROL
  const fanout::View<float, 1> view(elements);
#else
  const fanout::View<const float, 1> view(elements);
#endif
  ranks.all_reduce(view);
}
