// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <fanout/collective/communicator.hpp>

namespace {

using fanout::View;
using fanout::backend::Reduction;

struct Group {
  void end() {}
};

/// The least that is a communicator.
struct Least {
  std::size_t rank() const { return 0; }
  std::size_t size() const { return 1; }
  void broadcast(View<float, 1>, std::size_t) {}
  void reduce(View<float, 1>, std::size_t, Reduction) {}
  void all_reduce(View<float, 1>, Reduction) {}
  void all_gather(View<const float, 1>, View<float, 1>) {}
  void reduce_scatter(View<const float, 1>, View<float, 1>, Reduction) {}
  void send(View<const float, 1>, std::size_t) {}
  void recv(View<float, 1>, std::size_t) {}
  void barrier() {}
  Group group() { return {}; }
};
static_assert(fanout::backend::Communicator<Least>);

struct WithoutBarrier : Least {
  void barrier() = delete;
};
static_assert(!fanout::backend::Communicator<WithoutBarrier>);

struct IntegerRank : Least {
  int rank() const { return 0; }
};
static_assert(!fanout::backend::Communicator<IntegerRank>);

struct GroupWithoutEnd : Least {
  int group() { return 0; }
};
static_assert(!fanout::backend::Communicator<GroupWithoutEnd>);

}  // namespace

TEST_CASE("a reduction is a value") { CHECK(Reduction::sum != Reduction::mean); }
