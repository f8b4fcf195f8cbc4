// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <fanout/cuda.hpp>
#include <fanout/cuda/nccl/nccl_clique.hpp>
#include <fanout/cuda/nccl/nccl_transport.hpp>

#include "collective/communicator_conformance.hpp"
#include "cuda/gpus.hpp"
#include "cuda/stand_in/stand_in.h"

using fanout::CudaDevice;
using fanout::Tensor;
namespace cuda = fanout::cuda;

TEST_CASE("each rank has the stream of its own device") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const fanout::DeviceId ids[]{CudaDevice(0).id(), CudaDevice(1).id()};
  cuda::detail::NcclClique clique(ids);
  clique.use(ids);
  CHECK(clique.stream(0) != nullptr);
  CHECK(clique.stream(1) != nullptr);
  CHECK(clique.stream(0) != clique.stream(1));
}

TEST_CASE("a failure of ranks whose work is done is none of their call's") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const fanout::DeviceId ids[]{CudaDevice(0).id(), CudaDevice(1).id()};
  REQUIRE(cuda::peer_trusted(0, 1));
  fanout::backend::TransportRanks* const ranks = fanout::nccl_collectives()->open(ids);
  REQUIRE(ranks != nullptr);
  ranks->settle();
  stand_in_fail("ncclCommGetAsyncError", 1, 1, ncclSystemError);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the watch looks each millisecond
  CHECK(ranks->failure(0) == nullptr);
  CHECK(ranks->failure(1) == nullptr);
  CHECK(stand_in_no_failures() == 1);
  ranks->close();
}

TEST_CASE("communicators are not aborted while another thread starts a collective on them") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const fanout::DeviceId ids[]{CudaDevice(0).id(), CudaDevice(1).id()};
  REQUIRE(cuda::peer_trusted(0, 1));
  auto a = fanout_test::array_in(CudaDevice(0).memory(), std::vector<float>(10));
  auto b = fanout_test::array_in(CudaDevice(1).memory(), std::vector<float>(10));
  const auto reduced = [](const Tensor<float, 1>& x) {
    return fanout::backend::Collective{.kind = fanout::backend::Collective::Kind::all_reduce,
                                       .type = &fanout::detail::element_type<float>,
                                       .from = x.data(),
                                       .to = const_cast<float*>(x.data()),
                                       .from_space = x.space(),
                                       .to_space = x.space(),
                                       .count = 10};
  };
  const fanout::backend::Collective first = reduced(a), second = reduced(b);
  const fanout::backend::RankedCall calls[]{{.rank = 0, .call = &first}, {.rank = 1, .call = &second}};
  for (int round = 0; round < 30; ++round) {
    fanout::backend::TransportRanks* const ranks = fanout::nccl_collectives()->open(ids);
    REQUIRE(ranks != nullptr);
    std::atomic<bool> runs{false};
    std::thread starts([&] {
      const CudaDevice device(0);
      const auto entered = device.enter();
      try {
        for (int i = 0;; ++i) {
          ranks->run(calls);
          if (i == round % 5) runs = true;
        }
      } catch (const fanout::CommunicatorAbandoned&) {
      }
    });
    while (!runs) std::this_thread::yield();
    ranks->abort();
    starts.join();
    for (const int gpu : {0, 1}) CudaDevice(gpu).synchronize();
    ranks->close();
  }
}
