// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/collective/staged_communicator.hpp>

#include "collective/communicator_conformance.hpp"
#include "memory/remote_memory.hpp"
#include "support/host_ranks.hpp"

using fanout::Tensor;
using fanout::backend::StagedCommunicator;
using fanout_test::RemoteMemory;

namespace {

/// Ranks 0 and 2 in memories of their own, the others in the host's.
struct MixedRanks {
  using communicator = StagedCommunicator;
  template <class F>
  static void run(std::size_t ranks, const F& f) {
    fanout_test::run_ranks<StagedCommunicator>(ranks, f);
  }
  template <class T>
  static Tensor<T, 1> array(std::size_t rank, const std::vector<T>& elements) {
    const fanout::backend::Memory memory =
        rank % 2 == 0 ? RemoteMemory::memory(static_cast<int>(rank)) : fanout::backend::Memory{};
    return fanout_test::array_in(memory, elements);
  }
  template <class T>
  static std::vector<T> elements(const Tensor<T, 1>& array) {
    return fanout_test::elements_of(array);
  }
};

}  // namespace

FANOUT_TEST_COMMUNICATOR(MixedRanks);

TEST_CASE("a rank that is alone gathers from one array to another, whichever comes first in memory") {
  MixedRanks::run(1, [](StagedCommunicator& ranks) {
    Tensor<float, 1> one = MixedRanks::array(0, std::vector<float>{1, 2});
    Tensor<float, 1> other = MixedRanks::array(0, std::vector<float>{3, 4});
    ranks.all_gather(one, other);
    CHECK(MixedRanks::elements(other) == std::vector<float>{1, 2});
    other = MixedRanks::array(0, std::vector<float>{5, 6});
    ranks.all_gather(other, one);
    CHECK(MixedRanks::elements(one) == std::vector<float>{5, 6});
    CHECK(MixedRanks::elements(other) == std::vector<float>{5, 6});
  });
}

TEST_CASE("only arrays that are read are copied to the host, and only written ones are copied back") {
  auto& counts = RemoteMemory::counts();
  const auto moved = [&](const auto& call) {
    std::vector<Tensor<float, 1>> arrays;
    for (std::size_t rank = 0; rank < 2; ++rank) arrays.push_back(MixedRanks::array(2 * rank, std::vector<float>(4)));
    const std::size_t fetched = counts.fetched;
    const std::size_t sent = counts.sent;
    MixedRanks::run(2, [&](StagedCommunicator& ranks) { call(ranks, arrays[ranks.rank()]); });
    return std::pair{counts.fetched - fetched, counts.sent - sent};
  };
  CHECK(moved([](auto& ranks, auto& x) { ranks.all_reduce(x); }) == std::pair<std::size_t, std::size_t>{32, 32});
  CHECK(moved([](auto& ranks, auto& x) { ranks.reduce(x, 1); }) == std::pair<std::size_t, std::size_t>{32, 16});
  CHECK(moved([](auto& ranks, auto& x) { ranks.broadcast(x, 0); }) == std::pair<std::size_t, std::size_t>{16, 32});
  CHECK(moved([](auto& ranks, auto& x) { ranks.rank() == 0 ? ranks.send(x, 1) : ranks.recv(x, 0); }) ==
        std::pair<std::size_t, std::size_t>{16, 16});
}
