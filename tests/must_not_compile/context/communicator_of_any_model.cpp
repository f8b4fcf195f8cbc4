// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: ctx.communicator() needs a context that names its model
#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
struct Meets;
using Ctx = fanout::ShardContext<fanout::HostDevice, Meets>;
#else
using Ctx = fanout::ShardContext<fanout::HostDevice>;
#endif

struct Meets {
  void forward(Ctx& ctx, int sum) const { ctx.communicator().all_reduce(sum); }
};

int main() {
  const fanout::ParallelModel model{Meets{}};
  model(1);
}
