// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/transfer/peer_access.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/current_device.hpp>
#include <fanout/cuda/memory_info.hpp>
#include <fanout/cuda/runtime/availability.hpp>

#include "cuda/gpus.hpp"
#include "cuda/nothing_checked.hpp"
#include "support/message_of.hpp"

using fanout::cuda::peer_link;
using fanout::cuda::peer_trusted;
using fanout_test::has_gpus;
using fanout_test::has_stand_in;
using fanout_test::message_of;
using fanout_test::NothingChecked;
using fanout_test::says;
using fanout_test::Watched;

namespace {

/// Whether a GPU has access to a peer: what CUDA says when it is enabled once more.
bool has_access(int gpu, int peer) {
  const fanout::cuda::DeviceGuard guard(gpu);
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess) CHECK(cudaDeviceDisablePeerAccess(peer) == cudaSuccess);
  return status == cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

TEST_CASE("a GPU and itself are linked directly") {
  if (!has_gpus(1)) return;
  const Watched watched;
  CHECK(peer_trusted(0, 0));
  CHECK(peer_link(0, 0).why.empty());
}

TEST_CASE("GPUs that can access each other are connected, once it was seen that copies arrive") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const NothingChecked unchecked;
  const long copies = stand_in_copies("peer direct");
  const auto link = peer_link(0, 1);
  CHECK(link.direct);
  CHECK(link.why.empty());
  CHECK(link.from == 0);
  CHECK(link.to == 1);
  CHECK(has_access(0, 1));
  CHECK(has_access(1, 0));
  const long checked = stand_in_copies("peer direct") - copies;
  CHECK(checked == 8);  // four sizes, both ways
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  // Each pair is asked once.
  const long calls = stand_in_calls("cudaDeviceCanAccessPeer");
  CHECK(peer_link(0, 1).direct);
  CHECK(peer_trusted(fanout::CudaDevice(1), fanout::CudaDevice(0)));
  CHECK(peer_link(1, 0).from == 1);
  CHECK(stand_in_copies("peer direct") - copies == checked);
  CHECK(stand_in_calls("cudaDeviceCanAccessPeer") == calls);
}

TEST_CASE("GPUs that cannot access each other go through the host, and the reason is kept") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const NothingChecked unchecked;
  stand_in_set_peer(0, 1, 0);
  CHECK(!peer_trusted(0, 1));
  CHECK(!peer_trusted(1, 0));
  CHECK(says(peer_link(0, 1).why, "the hardware has no access from cuda:0 to cuda:1"));
  CHECK(!has_access(0, 1));
}

TEST_CASE("copies that silently arrive wrong are detected, and peer access is disabled again") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  for (const int from : {0, 1}) {
    CAPTURE(from);
    const NothingChecked unchecked;
    const int to = 1 - from;
    stand_in_set_corrupting(from, to, 1);  // and the way back is well
    CHECK(!peer_trusted(1, 0));
    CHECK(!peer_trusted(0, 1));
    CHECK(says(peer_link(1, 0).why, "a copy of 5 bytes from cuda:" + std::to_string(from) +
                                        " to cuda:" + std::to_string(to) + " arrived wrong, first at byte 0"));
    CHECK(peer_link(0, 1).why == peer_link(1, 0).why);
    CHECK(!has_access(0, 1));
    CHECK(!has_access(1, 0));
  }
}

TEST_CASE("peer access that somebody else enabled is used and left enabled") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const NothingChecked unchecked;
  {
    const fanout::cuda::DeviceGuard guard(0);
    REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  }
  SUBCASE("the pair is trusted") {
    CHECK(peer_trusted(0, 1));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  SUBCASE("the pair is not trusted") {
    stand_in_set_corrupting(0, 1, 1);
    CHECK(!peer_trusted(0, 1));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(!has_access(1, 0));
  }
  CHECK(has_access(0, 1));
}

TEST_CASE("whichever call fails while a pair is checked, nothing is left behind, and the pair is not trusted") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  {
    const NothingChecked unchecked;
    CHECK(peer_trusted(0, 1));  // what lasts is made now
  }
  const auto left = [] {
    return std::vector<int>{stand_in_alive("streams"), stand_in_alive("events"), stand_in_alive("pinned memory"),
                            stand_in_alive("device memory")};
  };
  const std::vector<int> before = left();
  // Not those that enter a GPU: what cannot enter it can give nothing back.
  for (const char* call : {"cudaDeviceCanAccessPeer", "cudaDeviceEnablePeerAccess", "cudaMemPoolSetAccess",
                           "cudaStreamCreateWithPriority", "cudaHostAlloc", "cudaMallocFromPoolAsync",
                           "cudaMemcpyAsync", "cudaMemsetAsync", "cudaMemcpyPeerAsync", "cudaStreamSynchronize"}) {
    for (const cudaError_t code : {cudaErrorInvalidValue, cudaErrorMemoryAllocation}) {
      bool failed = true;
      for (int nth = 1; failed; ++nth) {
        const NothingChecked unchecked;
        CAPTURE(call);
        CAPTURE(nth);
        stand_in_fail(call, nth, 1, code);
        const bool trusted = peer_trusted(0, 1);
        failed = stand_in_no_failures() == 0;
        // Memory is asked for twice, and the last wait for a stream comes when all is known.
        if (!failed) CHECK((trusted && nth > 1));
        CHECK(trusted == peer_trusted(1, 0));
        CHECK(cudaPeekAtLastError() == cudaSuccess);
        fanout::cuda::synchronize(0);
        fanout::cuda::synchronize(1);
        CHECK(left() == before);
      }
    }
  }
}

TEST_CASE("a GPU that is lost while a pair is checked is an error, and the pair is not decided") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const NothingChecked unchecked;
  // The first call for memory: what had been in use of a lost GPU would stay so.
  stand_in_fail("cudaMallocFromPoolAsync", 1, 1, cudaErrorIllegalAddress);
  CHECK_THROWS_AS(static_cast<void>(peer_link(0, 1)), fanout::cuda::DeviceLost);
  CHECK_THROWS_AS(static_cast<void>(peer_link(0, 1)), fanout::cuda::DeviceLost);
  for (const int gpu : {0, 1}) fanout::cuda::detail::losses[gpu].code.store(cudaSuccess);
  CHECK(peer_trusted(0, 1));
}

TEST_CASE("a pair that cannot be checked goes through the host") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  for (const char* call : {"cudaMemcpyPeerAsync", "cudaDeviceEnablePeerAccess", "cudaMemPoolSetAccess",
                           "cudaDeviceCanAccessPeer", "cudaHostAlloc"}) {
    const NothingChecked unchecked;
    CAPTURE(call);
    stand_in_fail(call, 1, 1, cudaErrorNotSupported);
    CHECK(!peer_trusted(0, 1));
    CHECK(stand_in_no_failures() == 0);
    CHECK(says(peer_link(0, 1).why, "cudaErrorNotSupported"));
    CHECK(!has_access(0, 1));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
}

TEST_CASE("a pair whose check failed for lack of memory is checked again, but not at each use") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  for (const std::string call : {"cudaMallocFromPoolAsync", "cudaDeviceEnablePeerAccess", "cudaMemPoolSetAccess"}) {
    const NothingChecked unchecked;
    CAPTURE(call);
    // An allocation that fails is tried once more.
    const auto fail = [&] {
      stand_in_fail(call.c_str(), 1, call == "cudaMallocFromPoolAsync" ? 2 : 1, cudaErrorMemoryAllocation);
    };
    fail();
    CHECK(!peer_trusted(0, 1));
    const long checks = stand_in_calls("cudaDeviceCanAccessPeer");
    for (int use = 1; use < 16; ++use) CHECK(!peer_trusted(use % 2, 1 - use % 2));
    CHECK(stand_in_calls("cudaDeviceCanAccessPeer") == checks);
    fail();
    for (int use = 16; use < 32; ++use) CHECK(!peer_trusted(0, 1));  // the first of them checks
    CHECK(stand_in_no_failures() == 0);
    CHECK(peer_trusted(1, 0));
    CHECK(peer_link(0, 1).direct);
    CHECK(has_access(0, 1));
  }
}

TEST_CASE("a pair whose check failed for lack of memory is checked again when its link is asked for") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const NothingChecked unchecked;
  for (int attempt = 0; attempt < 3; ++attempt) {
    stand_in_fail("cudaMallocFromPoolAsync", 1, 2, cudaErrorMemoryAllocation);
    const fanout::cuda::PeerLink link = peer_link(0, 1);
    CHECK(!link.direct);
    CHECK(says(link.why, "it could not be checked: out of memory"));
    CHECK(!has_access(0, 1));
  }
  CHECK(peer_link(0, 1).direct);
  CHECK(peer_link(1, 0).why.empty());
  CHECK(peer_trusted(0, 1));
}

TEST_CASE("many threads that ask for a pair at once get one answer") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const NothingChecked unchecked;
  const long calls = stand_in_calls("cudaDeviceCanAccessPeer");
  std::vector<fanout::cuda::PeerLink> found(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = i % 2 == 0 ? peer_link(0, 1) : peer_link(1, 0); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].from == static_cast<int>(i % 2));
    CHECK(found[i].direct);
  }
  CHECK(stand_in_calls("cudaDeviceCanAccessPeer") - calls == 2);  // once, both ways
}

TEST_CASE("rule 157: a link from or to a device that does not exist names it") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const int none = fanout::cuda::device_count();
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(peer_link(none, 0)); }), "Invalid device id"));
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(peer_link(0, none)); }),
             "Invalid peer device id"));
}
