// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/transfer/peer_reads.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
namespace detail = fanout::cuda::detail;

namespace {

const char* at(std::size_t place) {
  static const char bytes[1000] = {};
  return bytes + place;
}

}  // namespace

TEST_CASE("a stream waits for the copies that read what it releases, and for no other ones") {
  if (!fanout_test::has_gpus(2)) return;
  const fanout_test::Watched watched;
  const cuda::Stream reading(1);
  const cuda::Stream owner(0);
  detail::PeerReads reads;
  fanout_test::Barrier barrier;
  fanout_test::call_in(reading, barrier);
  reads.add(at(100), 50, reading);
  reads.await_in(owner, at(0), 100);
  reads.await_in(owner, at(150), 100);
  CHECK(owner.is_idle());
  for (const std::size_t first : {std::size_t{51}, std::size_t{149}}) {
    const cuda::Stream other(0);
    reads.await_in(other, at(first), 50);
    CHECK_FALSE(other.is_idle());
  }
  barrier.open();
  reading.synchronize();
}

TEST_CASE("copies that are done are forgotten, and their events are used again") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const cuda::Stream reading(1);
  const int events = stand_in_alive("events");
  {
    detail::PeerReads reads;
    for (int i = 0; i < 1000; ++i) {
      reads.add(at(0), 8, reading);
      if (i % 10 == 0) reading.synchronize();
    }
    reading.synchronize();
    CHECK(stand_in_alive("events") - events < 100);
    const long waits = stand_in_calls("cudaStreamWaitEvent");
    for (int i = 0; i < 100; ++i) reads.add(at(900), 8, reading);
    reading.synchronize();
    for (int i = 0; i < 100; ++i) reads.add(at(800), 8, reading);
    const cuda::Stream owner(0);
    reads.await_in(owner, at(0), 8);
    CHECK(stand_in_calls("cudaStreamWaitEvent") - waits < 32);
  }
  reading.synchronize();
}

TEST_CASE("nobody waits for a GPU that is lost") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const cuda::Stream reading(1);
  const cuda::Stream owner(0);
  detail::PeerReads reads;
  for (int i = 0; i < 16; ++i) reads.add(at(0), 8, reading);
  auto fail = [] { stand_in_poison(1, cudaErrorIllegalAddress); };
  fanout_test::call_in(reading, fail);
  CHECK_THROWS_AS(reading.synchronize(), cuda::DeviceLost);
  CHECK_NOTHROW(reads.await_in(owner, at(0), 8));
  owner.synchronize();
  const cuda::Stream other(0);
  CHECK_NOTHROW(reads.add(at(0), 8, other));
}
