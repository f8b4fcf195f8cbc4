// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: all_gather and reduce_scatter take two arrays of one element type
#include <vector>

#include <fanout/collective/host_communicator.hpp>

int main() {
  fanout::backend::HostRendezvous rendezvous(1);
  fanout::backend::HostCommunicator ranks(rendezvous, 0);
#ifdef FANOUT_CONTROL
  const std::vector<double> from(2);
#else
  const std::vector<float> from(2);
#endif
  std::vector<double> to(2);
  ranks.all_gather(from, to);
}
