// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/collective/collective_buckets.hpp>
#include <fanout/collective/host_communicator.hpp>
#include <fanout/collective/staged_communicator.hpp>
#include <fanout/tree/dict.hpp>

#include "collective/communicator_conformance.hpp"
#include "memory/remote_memory.hpp"
#include "support/host_ranks.hpp"
#include "support/message_of.hpp"
#include "support/threads_of_process.hpp"

using namespace fanout::literals;
using fanout::CommunicatorAbandoned;
using fanout::StructureMismatch;
using fanout::Tensor;
using fanout::backend::BucketSizes;
using fanout::backend::Collective;
using fanout::backend::HostCommunicator;
using fanout::backend::Reduction;
using fanout_test::message_of;
using fanout_test::run_ranks;
using fanout_test::says;

namespace {

/// A rank that is alone, and notes which calls run together, and on which thread.
class NotingCommunicator : public fanout::backend::CollectiveCalls<NotingCommunicator> {
 public:
  struct Note {
    std::vector<std::size_t> counts;
    std::thread::id thread;
  };

  explicit NotingCommunicator(bool any_thread = true) : any_thread_(any_thread) {}
  std::size_t rank() const noexcept { return 0; }
  std::size_t size() const noexcept { return 1; }
  bool allows_any_thread() const noexcept { return any_thread_; }
  void run(const Collective* calls, std::size_t count) {
    Note note{{}, std::this_thread::get_id()};
    for (std::size_t i = 0; i < count; ++i) note.counts.push_back(calls[i].count);
    notes.push_back(note);
  }

  std::vector<std::vector<std::size_t>> counts() const {
    std::vector<std::vector<std::size_t>> all;
    for (const Note& note : notes) all.push_back(note.counts);
    return all;
  }

  std::vector<Note> notes;

 private:
  bool any_thread_;
};

using Counts = std::vector<std::vector<std::size_t>>;

/// The buckets of arrays of floats with so many elements.
Counts buckets_of(const std::vector<std::size_t>& counts, const BucketSizes& sizes) {
  NotingCommunicator communicator;
  std::vector<Tensor<float, 1>> arrays;
  for (const std::size_t count : counts) arrays.emplace_back(count);
  auto buckets = communicator.buckets(sizes);
  for (auto& array : arrays) buckets.all_reduce_async(array);
  buckets.wait();
  return communicator.counts();
}

Tensor<double, 1> filled(std::size_t count, double value) {
  Tensor<double, 1> array(count);
  for (double& x : array) x = value;
  return array;
}

template <class Array>
bool all_are(const Array& array, double value) {
  for (const auto x : array) {
    if (x != value) return false;
  }
  return true;
}

constexpr BucketSizes small{.first = 64, .others = 256};

}  // namespace

TEST_CASE("buckets close at the array that fills them, the first one earlier, as in PyTorch's own test") {
  // ComputeBucketAssignmentTest of test_c10d_common.py: float tensors, limits in bytes.
  CHECK(buckets_of({100, 200, 100, 50}, {.first = 400, .others = 400}) == Counts{{100}, {200}, {100}, {50}});
  CHECK(buckets_of({10, 10, 10, 10}, {.first = 40, .others = 80}) == Counts{{10}, {10, 10}, {10}});
  CHECK(buckets_of({}, small).empty());
  CHECK(buckets_of({1, 2, 3}, small) == Counts{{1, 2, 3}});
  CHECK(buckets_of({0, 0}, small) == Counts{{0, 0}});
  CHECK(buckets_of({3, 4, 5}, {.first = 0, .others = 0}) == Counts{{3}, {4}, {5}});
  CHECK(BucketSizes{}.first == 1024 * 1024);
  CHECK(BucketSizes{}.others == 25 * 1024 * 1024);
}

TEST_CASE("full buckets run on one thread of their own, the last one on the caller's, and small ones start no thread") {
  const std::size_t before = fanout_test::count_settled_threads();
  const auto caller = std::this_thread::get_id();
  Tensor<float, 1> array(16);  // 64 bytes
  NotingCommunicator communicator;
  {
    auto buckets = communicator.buckets(small);
    buckets.wait();
    CHECK(buckets.ready());
    Tensor<float, 1> little(15);
    buckets.all_reduce_async(little);
    CHECK_FALSE(buckets.ready());
    buckets.wait();
    CHECK(buckets.ready());
    CHECK(fanout_test::count_threads() == before);
    for (int i = 0; i < 6; ++i) buckets.all_reduce_async(array);  // the first one is full again after wait()
  }
  CHECK(fanout_test::has_threads(before));
  REQUIRE(communicator.counts() == Counts{{15}, {16}, {16, 16, 16, 16}, {16}});
  CHECK(communicator.notes[0].thread == caller);
  CHECK(communicator.notes[1].thread != caller);
  CHECK(communicator.notes[2].thread == communicator.notes[1].thread);
  CHECK(communicator.notes[3].thread == caller);
}

TEST_CASE("a communicator of one thread runs its buckets on that") {
  NotingCommunicator communicator(false);
  Tensor<float, 1> array(16);
  auto buckets = communicator.buckets(small);
  buckets.all_reduce_async(array);
  CHECK(buckets.ready());
  REQUIRE(communicator.counts() == Counts{{16}});
  CHECK(communicator.notes[0].thread == std::this_thread::get_id());
}

TEST_CASE("arrays in other memory run on the caller's thread") {
  NotingCommunicator communicator;
  Tensor<double, 1> here(8);
  auto there = fanout_test::array_in(fanout_test::RemoteMemory::memory(0), std::vector<double>(8));
  {
    auto buckets = communicator.buckets({.first = 64, .others = 128});
    buckets.all_reduce_async(here);
    buckets.all_reduce_async(here);
    buckets.all_reduce_async(there);
  }
  REQUIRE(communicator.counts() == Counts{{8}, {8, 8}});
  CHECK(communicator.notes[0].thread != std::this_thread::get_id());
  CHECK(communicator.notes[1].thread == std::this_thread::get_id());
}

TEST_CASE("a bucket that is not full does not run if an exception ends the scope") {
  NotingCommunicator communicator;
  Tensor<double, 1> array(1);
  CHECK_THROWS_AS(
      [&] {
        auto buckets = communicator.buckets(small);
        buckets.all_reduce_async(array);
        throw std::runtime_error("a gradient is NaN");
      }(),
      std::runtime_error);
  CHECK(communicator.notes.empty());
  communicator.buckets().all_reduce_async(array);  // there are no others any more
  CHECK(communicator.counts() == Counts{{1}});
}

TEST_CASE("arrays in other memory are reduced through the host, after the buckets before them") {
  run_ranks<fanout::backend::StagedCommunicator>(2, [](fanout::backend::StagedCommunicator& communicator) {
    const double rank = static_cast<double>(communicator.rank());
    auto here = filled(8, rank);
    auto there = fanout_test::array_in(fanout_test::RemoteMemory::memory(static_cast<int>(communicator.rank())),
                                       std::vector<double>(8, 10 * rank));
    auto buckets = communicator.buckets(small);
    buckets.all_reduce_async(here);
    buckets.all_reduce_async(there);
    buckets.all_reduce_async(here);
    buckets.wait();
    CHECK(all_are(here, 2));
    CHECK(fanout_test::elements_of(there) == std::vector<double>(8, 10));
  });
}

TEST_CASE("all ranks get the reductions of trees, which may go to several buckets") {
  for (const std::size_t ranks : {1U, 2U, 5U}) {
    std::atomic<std::size_t> right{0};
    run_ranks<HostCommunicator>(ranks, [&](HostCommunicator& communicator) {
      const double rank = static_cast<double>(communicator.rank());
      auto tree = fanout::dict("w"_k = filled(7, rank), "b"_k = std::vector{filled(1, 1), filled(90, rank)}, "n"_k = 1);
      auto most = filled(30, rank);
      auto buckets = communicator.buckets(small);
      buckets.all_reduce_async(tree);
      buckets.all_reduce_async(most, Reduction::max);
      buckets.wait();
      const double sum = static_cast<double>(ranks * (ranks - 1)) / 2;
      if (all_are(tree["w"_k], sum) && all_are(tree["b"_k][0], static_cast<double>(ranks)) &&
          all_are(tree["b"_k][1], sum) && tree["n"_k] == static_cast<int>(ranks) &&
          all_are(most, static_cast<double>(ranks - 1))) {
        ++right;
      }
    });
    CHECK(right == ranks);
  }
}

TEST_CASE("a full bucket is reduced while the ranks do something else") {
  std::atomic<int> reduced{0};
  run_ranks<HostCommunicator>(3, [&](HostCommunicator& communicator) {
    auto array = filled(100, 1);
    auto buckets = communicator.buckets(small);
    buckets.all_reduce_async(array);
    while (!buckets.ready()) std::this_thread::yield();  // the rank itself makes no collective
    if (all_are(array, 3)) ++reduced;
  });
  CHECK(reduced == 3);
}

TEST_CASE("other collectives of the communicator wait for its buckets, also those that are not full") {
  std::atomic<int> right{0};
  run_ranks<HostCommunicator>(3, [&](HostCommunicator& communicator) {
    auto large = filled(100, 1);
    auto little = filled(1, 2);
    double number = 1;
    auto buckets = communicator.buckets(small);
    for (int i = 0; i < 20; ++i) {
      buckets.all_reduce_async(large, Reduction::mean);
      buckets.all_reduce_async(little, Reduction::mean);
      communicator.all_reduce(number, Reduction::max);
      if (!buckets.ready()) return;
    }
    auto group = communicator.group();
    communicator.all_reduce(number);
    buckets.all_reduce_async(large);  // is not of the group
    group.end();
    if (all_are(large, 3) && all_are(little, 2) && number == 3) ++right;
  });
  CHECK(right == 3);
}

TEST_CASE("buckets that do not fit together throw on all ranks, at the next call or at wait()") {
  const auto texts = fanout_test::texts_of<StructureMismatch, HostCommunicator>(2, [](HostCommunicator& communicator) {
    auto array = filled(100, 1);
    auto buckets = communicator.buckets(small);
    buckets.all_reduce_async(array, communicator.rank() == 0 ? Reduction::sum : Reduction::max);
    buckets.wait();
  });
  for (const std::string& text : texts) {
    CHECK(says(text, "rank 0 called all_reduce(sum)", "rank 1 called all_reduce(max)"));
  }
}

TEST_CASE("a rank that throws drops its buckets, and releases the ranks that wait for them") {
  const std::size_t before = fanout_test::count_settled_threads();
  const auto texts =
      fanout_test::texts_of<CommunicatorAbandoned, HostCommunicator>(3, [](HostCommunicator& communicator) {
        auto array = filled(100, 1);
        auto little = filled(1, 1);
        auto buckets = communicator.buckets(small);
        buckets.all_reduce_async(array);
        buckets.all_reduce_async(little);
        if (communicator.rank() == 1) throw std::runtime_error("a gradient is NaN");
        buckets.all_reduce_async(array);
        buckets.wait();
      });
  CHECK(texts[1] == "another: a gradient is NaN");
  CHECK(says(texts[0], "rank 1 threw: an exception"));
  CHECK(says(texts[2], "rank 1 threw: an exception"));
  CHECK(fanout_test::has_threads(before));
}

TEST_CASE("bad calls of buckets are refused, and the buckets work afterwards") {
  NotingCommunicator communicator;
  auto buckets = communicator.buckets(small);
  CHECK(says(message_of<fanout::Error>([&] { static_cast<void>(communicator.buckets()); }),
             "a communicator has buckets already", "destroy them first"));
  std::vector<int> numbers(3);
  CHECK(says(message_of<fanout::InvalidArgument>([&] { buckets.all_reduce_async(numbers, Reduction::mean); }),
             "these elements have no such reduction", "int[3]"));
  buckets.all_reduce_async(numbers);
  buckets.wait();
  CHECK(communicator.counts() == Counts{{3}});
}

TEST_CASE("a rank cannot use a second communicator while the buckets of the first one run") {
  fanout::backend::HostRendezvous rendezvous(2);
  std::thread other;
  std::string texts;
  const auto note = [&texts](const auto& f) {
    try {
      f();
    } catch (const fanout::Error& error) {
      texts += std::string(error.what()) + "\n";
    }
  };
  auto array = filled(100, 1);
  {
    HostCommunicator communicator(rendezvous, 0);
    auto buckets = communicator.buckets(small);
    buckets.all_reduce_async(array);
    other = std::thread([&rendezvous] {  // so that whoever comes first does not wait for ever
      const HostCommunicator leaves(rendezvous, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    note([&] { HostCommunicator(rendezvous, 0).barrier(); });
    note([&] { buckets.wait(); });
  }
  other.join();
  CHECK(says(texts, "two threads call collectives as one rank at once", "rank 0", "by the communicator that made"));
}

TEST_CASE("an exception that ends an inner group drops no call of the outer one, which runs them together") {
  NotingCommunicator communicator;
  Tensor<double, 1> array(1);
  Tensor<double, 1> more(2);
  {
    auto outer = communicator.group();
    communicator.all_reduce(array);
    CHECK_THROWS_AS(
        [&] {
          auto inner = communicator.group();
          throw std::runtime_error("a gradient is NaN");
        }(),
        std::runtime_error);
    communicator.all_reduce(more);
    CHECK(communicator.notes.empty());
  }
  CHECK(communicator.counts() == Counts{{1, 2}});
}
