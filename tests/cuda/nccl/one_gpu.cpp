// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one GPU alone can show of NCCL, so that it also runs on the real one: its functions are found, its calls are in
// order with the stream, and errors come out of it.
#include <doctest/doctest.h>

#include <vector>

#include <fanout/cuda.hpp>
#include <fanout/cuda/nccl.hpp>

#include "collective/communicator_conformance.hpp"
#include "cuda/gpus.hpp"

using fanout::CudaDevice;
using fanout::NcclCommunicator;
using fanout_test::array_in;
using fanout_test::elements_of;
using Floats = std::vector<float>;

namespace {

/// Every collective, of one rank: each returns what it was given.
template <class C>
void call_all(C& ranks, fanout::View<float, 1> x, fanout::View<float, 1> y) {
  ranks.all_reduce(x);
  ranks.all_reduce(x, fanout::backend::Reduction::mean);
  ranks.reduce(x, 0, fanout::backend::Reduction::max);
  ranks.broadcast(x, 0);
  const auto group = ranks.group();
  ranks.all_gather(x, y);
  ranks.reduce_scatter(x, x.rows({0, x.size()}));
}

}  // namespace

TEST_CASE("a communicator of one rank returns what it was given") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  ncclComm_t made = nullptr;
  REQUIRE(::ncclCommInitAll(&made, 1, nullptr) == ncclSuccess);
  {
    const CudaDevice device(0);
    const auto entered = device.enter();
    NcclCommunicator ranks(made, device.stream());
    const Floats numbers{1, 2, 3};
    auto x = array_in(device.memory(), numbers);
    auto y = array_in(device.memory(), Floats(3));
    call_all(ranks, x.view(), y.view());
    ranks.barrier();
    ranks.wait();
    CHECK(elements_of(x) == numbers);
    CHECK(elements_of(y) == numbers);
    CHECK_THROWS_AS(ranks.broadcast(x, 7), fanout::Error);  // no such rank
    ranks.all_reduce(x);                                    // and it works afterwards
    CHECK(elements_of(x) == numbers);
  }
  CHECK(::ncclCommDestroy(made) == ncclSuccess);
}
