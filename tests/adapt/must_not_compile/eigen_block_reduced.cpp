// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a collective takes arrays (tensors, views, vectors, spans), numbers, and trees of these
// expect: a matrix of another library goes in as the view that as_view(x) makes
#include <fanout/adapt/eigen.hpp>
#include <fanout/collective/host_communicator.hpp>

int main() {
  fanout::backend::HostRendezvous rendezvous(1);
  fanout::backend::HostCommunicator ranks(rendezvous, 0);
  Eigen::MatrixXd matrix(4, 3);
#ifdef FANOUT_CONTROL
  auto part = fanout::as_view(matrix.transpose());
#else
  auto part = matrix.topLeftCorner(2, 2);
#endif
  ranks.all_reduce(part);
}
