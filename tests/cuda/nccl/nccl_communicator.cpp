// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

#include <fanout/cuda.hpp>
#include <fanout/cuda/nccl/nccl_communicator.hpp>

#include "collective/communicator_conformance.hpp"
#include "cuda/gpus.hpp"

using fanout::CudaDevice;
using fanout::NcclCommunicator;
using fanout::Tensor;
namespace cuda = fanout::cuda;

namespace {

/// Ranks for the conformance tests, each on a GPU and a thread of its own.
struct NcclRanks {
  using communicator = NcclCommunicator;
  static bool available(std::size_t ranks) { return fanout_test::has_gpus(static_cast<int>(ranks)); }
  template <class F>
  static void run(std::size_t ranks, const F& f) {
    std::vector<ncclComm_t> made(ranks);
    REQUIRE(::ncclCommInitAll(made.data(), static_cast<int>(ranks), nullptr) == ncclSuccess);
    run(made, f);
  }
  template <class F>
  static void run(const std::vector<ncclComm_t>& made, const F& f) {
    const std::size_t ranks = made.size();
    for (int i = 0; i < static_cast<int>(ranks); ++i) {
      for (int k = 0; k < i; ++k) REQUIRE(cuda::peer_trusted(k, i));
    }
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&made, &f, rank] {
        const CudaDevice device(static_cast<int>(rank));
        const auto entered = device.enter();
        NcclCommunicator communicator(made[rank], device.stream());
        f(communicator);
        communicator.wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (ncclComm_t communicator : made) ::ncclCommDestroy(communicator);
  }
  template <class T>
  static Tensor<T, 1> array(std::size_t rank, const std::vector<T>& elements) {
    const fanout::backend::Memory memory = CudaDevice(static_cast<int>(rank)).memory();
    return fanout_test::array_in(memory, elements);
  }
  template <class T>
  static std::vector<T> elements(const Tensor<T, 1>& array) {
    return fanout_test::elements_of(array);
  }
};

/// True if NCCL reduces these numbers as numbers of type T. Both ends of T's range are among them, where other types of
/// that size give other results.
template <class T>
bool reduces_as_its_type() {
  constexpr T least = std::numeric_limits<T>::lowest();
  constexpr T greatest = std::numeric_limits<T>::max();
  constexpr T half = greatest / 2 + 1;  // of unsigned numbers the top bit alone
  const auto reduced = [&](fanout::backend::Reduction by) {
    return fanout_test::after<NcclRanks>(
        2,
        [&](std::size_t rank) {
          return rank == 0 ? std::vector<T>{least, greatest, 1, half} : std::vector<T>{1, 1, greatest, 3};
        },
        [by](NcclCommunicator& ranks, auto& x) { ranks.all_reduce(x.view(), by); });
  };
  using Twice = std::vector<std::vector<T>>;
  return reduced(fanout::backend::Reduction::max) == Twice(2, {1, greatest, greatest, half}) &&
         reduced(fanout::backend::Reduction::min) == Twice(2, {least, 1, 1, 3});
}

/// A communicator of so many ranks whose functions may return before NCCL has done what they say.
std::vector<ncclComm_t> communicators_that_do_not_block(int ranks) {
  std::vector<ncclComm_t> made(static_cast<std::size_t>(ranks));
  ncclUniqueId id;
  REQUIRE(::ncclGetUniqueId(&id) == ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  REQUIRE(::ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < ranks; ++rank) {
    const CudaDevice device(rank);
    const auto entered = device.enter();
    REQUIRE(::ncclCommInitRankConfig(&made[static_cast<std::size_t>(rank)], ranks, id, rank, &config) == ncclSuccess);
  }
  REQUIRE(::ncclGroupEnd() == ncclInProgress);
  return made;
}

}  // namespace

FANOUT_TEST_COMMUNICATOR(NcclRanks);

TEST_CASE_TEMPLATE("numbers of each type are reduced as that type", T, signed char, int, long, long long, unsigned char,
                   unsigned, unsigned long, unsigned long long, float, double) {
  if (!fanout_test::has_gpus(2)) return;
  const fanout_test::Watched watched;
  CHECK(reduces_as_its_type<T>());
}

TEST_CASE("arrays off the communicator's GPU, and types that cannot be reduced, are refused") {
  if (!fanout_test::has_gpus(1)) return;
  NcclRanks::run(1, [](NcclCommunicator& ranks) {
    std::vector<float> here(2);
    CHECK_THROWS_AS(ranks.all_reduce(here), fanout::DeviceMismatch);
    auto own = NcclRanks::array(0, std::vector<float>(2));  // one of the two arrays alone
    CHECK_THROWS_AS(ranks.all_gather(here, own), fanout::DeviceMismatch);
    CHECK_THROWS_AS(ranks.all_gather(own, here), fanout::DeviceMismatch);
    auto there = NcclRanks::array(0, std::vector<short>(2));
    CHECK_THROWS_AS(ranks.all_reduce(there), fanout::InvalidArgument);
    CHECK_NOTHROW(ranks.all_reduce(std::vector<fanout::Tensor<float, 1>>()));  // a tree without arrays is nowhere
    CHECK(ranks.rank() == 0);
    CHECK(ranks.size() == 1);
  });
}

TEST_CASE("collectives of communicators that do not block have started when a call returns") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const auto made = communicators_that_do_not_block(2);
  NcclRanks::run(made, [](NcclCommunicator& ranks) {
    auto x = NcclRanks::array(ranks.rank(), std::vector<float>{1, 2});
    ranks.all_reduce(x.view());
    ranks.all_reduce(x.view());
    ranks.barrier();
    CHECK(NcclRanks::elements(x) == std::vector<float>{4, 8});
  });
}
