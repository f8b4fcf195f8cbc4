// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: ranks gather trees that hold values and views; this one holds references
#include <mpi.h>

#include <tuple>

#include <fanout/mpi.hpp>

int main() {
  const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
  fanout::Tensor<int, 1> x(3);
  fanout::Tensor<int, 1> y(3);
#ifdef FANOUT_CONTROL
  (void)ranks.gather(std::tuple{x.view(), y.view()}, 0);
#else
  (void)ranks.gather(std::tie(x, y), 0);
#endif
}
