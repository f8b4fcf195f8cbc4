// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/cuda/runtime/enqueue_copy.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
namespace detail = fanout::cuda::detail;

TEST_CASE("copies are enqueued in their streams, and refused copies name the GPU") {
  if (!fanout_test::has_gpus(2)) return;
  const fanout_test::Watched watched;
  const cuda::Stream first(0);
  const cuda::Stream second(1);
  void* const here = detail::allocate_in(first, sizeof(int));
  void* const there = detail::allocate_in(second, sizeof(int));
  second.synchronize();
  const int sent = 7;
  int back = 0;
  detail::enqueue_copy(first, here, &sent, sizeof sent, cudaMemcpyHostToDevice);
  detail::enqueue_peer_copy(first, there, 1, here, 0, sizeof sent);
  first.synchronize();
  detail::enqueue_copy(second, &back, there, sizeof back, cudaMemcpyDeviceToHost);
  second.synchronize();
  CHECK(back == 7);
  if (stand_in_is_here()) {
    stand_in_fail("cudaMemcpyPeerAsync", 1, 1, cudaErrorInvalidValue);
    const auto refused = [&] { detail::enqueue_peer_copy(second, there, 1, here, 0, sizeof sent); };
    CHECK(fanout_test::message_of(refused).find("cuda:1") != std::string::npos);
  }
  detail::release_in(first, here, sizeof(int));
  detail::release_in(second, there, sizeof(int));
  for (const cuda::Stream* stream : {&first, &second}) stream->synchronize();
}
