// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: shards and ranks match maps by the values of their keys, and these keys cannot be compared
#include <map>

#include <fanout/collective/host_communicator.hpp>

int main() {
  fanout::backend::HostRendezvous rendezvous(1);
  fanout::backend::HostCommunicator ranks(rendezvous, 0);
#ifdef FANOUT_CONTROL
  std::map<int, int> tree;
#else
  std::map<const char*, int> tree;
#endif
  ranks.broadcast(tree);
}
