// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/rendezvous/mpi_rendezvous.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <collective/communicator_conformance.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/plan/even_split.hpp>
#include <mpi/threads/thread_mail.hpp>
#include <support/message_of.hpp>

// Collectives between the shards of all ranks, which are threads. So many ranks of a rendezvous are shared out among
// some processes, and some of these may have none.

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout::detail::EvenParts;
using fanout::detail::MpiRendezvous;
using fanout_test::message_of;
using fanout_test::on_ranks;
using fanout_test::ThreadGroup;

class RendezvousCommunicator : public fanout::backend::CollectiveCalls<RendezvousCommunicator> {
 public:
  RendezvousCommunicator(MpiRendezvous& rendezvous, std::size_t rank, std::size_t size)
      : rendezvous_(rendezvous), rank_(rank), size_(size) {}
  std::size_t rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return size_; }
  void run(fanout::backend::Collective* calls, std::size_t count) {
    rendezvous_.meet(rank_, calls, count, {.start = [](void*) noexcept {}, .of = nullptr});
  }

 private:
  MpiRendezvous& rendezvous_;
  std::size_t rank_;
  std::size_t size_;
};

template <std::size_t processes>
struct RanksOfThreads {
  using communicator = RendezvousCommunicator;

  template <class F>
  static void run(std::size_t ranks, const F& f) {
    on_ranks(processes, [&] {
      const ThreadGroup own;
      const EvenParts parts(ranks, processes);
      std::vector<std::size_t> shards;
      for (std::size_t process = 0; process < processes; ++process) shards.push_back(parts[process].size());
      fanout::detail::RendezvousTags tags;
      MpiRendezvous rendezvous(own.group, shards, tags);
      std::vector<std::thread> threads;
      for (const std::size_t rank : parts[own.rank()]) {
        threads.emplace_back([&, rank] {
          std::exception_ptr failure;
          try {
            RendezvousCommunicator communicator(rendezvous, rank, ranks);
            f(communicator);
          } catch (...) {
            failure = std::current_exception();
          }
          rendezvous.leave(rank, failure);
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  }

  template <class T>
  static Tensor<T, 1> array(std::size_t, const std::vector<T>& elements) {
    return fanout_test::array_in(fanout::backend::Memory{}, elements);
  }
  template <class T>
  static std::vector<T> elements(const Tensor<T, 1>& array) {
    return fanout_test::elements_of(array);
  }
};

/// The messages that the calls of three ranks end with; empty for a rank that gets none.
template <class F>
std::vector<std::string> messages(const F& f) {
  std::vector<std::string> all(3);
  RanksOfThreads<2>::run(3, [&](RendezvousCommunicator& c) {
    try {
      f(c);
    } catch (const std::exception& error) {
      all[c.rank()] = error.what();
      throw;
    }
  });
  return all;
}

struct FailsOnRow {
  double row;

  double forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    for (const double each : x) {
      if (each == row) throw std::runtime_error("row of " + std::to_string(static_cast<int>(row)));
    }
    double sum = 1;
    ctx.communicator().all_reduce(sum);
    return sum;
  }
};

Tensor<double, 1> numbers(fanout::RowRange rows) {
  Tensor<double, 1> made(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) made(i) = static_cast<double>(rows.first + i);
  return made;
}

}  // namespace

FANOUT_TEST_COMMUNICATOR(RanksOfThreads<1>, RanksOfThreads<2>, RanksOfThreads<4>);

TEST_CASE("sums over ranks have the bits of one process, however the shards are shared out") {
  const auto value = [](std::size_t rank, std::size_t i) { return 1 / static_cast<float>(1 + 7 * rank + i); };
  const auto sums = fanout_test::after<RanksOfThreads<3>>(
      5,
      [&](std::size_t rank) {
        std::vector<float> x(3001);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(rank, i);
        return x;
      },
      [](auto& c, auto& x) { c.all_reduce(x.view()); });
  fanout::backend::HostRendezvous alone(5);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 5; ++rank) {
    threads.emplace_back([&, rank] {
      fanout::backend::HostCommunicator c(alone, rank);
      std::vector<float> x(3001);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(rank, i);
      c.all_reduce(x);
      if (rank == 0) CHECK(x == sums[0]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("collectives that do not fit are named on all ranks") {
  for (const std::string& text : messages([](auto& c) {
         int x = 0;
         if (c.rank() == 1) {
           c.barrier();
         } else {
           c.all_reduce(x);
         }
       })) {
    CHECK(text.find("collectives that do not fit together: found rank 0 called all_reduce(sum) of int, rank 1 called "
                    "barrier, rank 2 called all_reduce(sum) of int") != std::string::npos);
  }
  for (const std::string& text : messages([](auto& c) {
         std::vector<int> x(c.rank() == 2 ? 3 : 2);
         c.all_reduce(x);
       })) {
    CHECK(text.find("collectives with arrays of different extents") != std::string::npos);
    CHECK(text.find("rank 2 called all_reduce(sum) of int[3]") != std::string::npos);
  }
}

TEST_CASE("ranks may go on after collectives that all of them were refused") {
  std::vector<std::size_t> sums(3);
  RanksOfThreads<2>::run(3, [&](RendezvousCommunicator& c) {
    std::size_t x = c.rank();
    CHECK_THROWS_AS(c.broadcast(x, c.rank() == 0 ? 0 : 1), fanout::StructureMismatch);
    c.all_reduce(x);
    sums[c.rank()] = x;
  });
  CHECK(sums == std::vector<std::size_t>{3, 3, 3});
}

TEST_CASE("two ranks that wait for each other are refused") {
  const auto texts = messages([](auto& c) {
    int x = 0;
    if (c.rank() != 2) c.send(x, 1 - c.rank());
  });
  CHECK(texts[0].find("rank 0 called send of int to rank 1, rank 1 called send of int to rank 0") != std::string::npos);
  CHECK(texts[1].find("call both in a group()") != std::string::npos);
  const auto mixed = messages([](auto& c) {
    int x = 0;
    if (c.rank() == 0) {
      c.recv(x, 1);
    } else {
      c.barrier();
    }
  });
  CHECK(mixed[0].find("rank 0 called recv of int from rank 1, rank 1 called barrier") != std::string::npos);
  CHECK(mixed[1].find("rank 0 called recv of int from rank 1") != std::string::npos);
  CHECK(mixed[2].find("and rank ") != std::string::npos);  // released by the others
}

TEST_CASE("a send and a recv of other types or extents are refused on both") {
  const auto texts = messages([](auto& c) {
    std::vector<int> x(2 + c.rank());
    if (c.rank() == 0) c.send(x, 1);
    if (c.rank() == 1) c.recv(x, 0);
  });
  CHECK(texts[0].find("different extents") != std::string::npos);
  CHECK(texts[1].find("rank 0 called send of int[2] to rank 1, rank 1 called recv of int[3] from rank 0") !=
        std::string::npos);
}

TEST_CASE("a rank that leaves releases the others, which name it and its exception") {
  const auto texts = messages([](auto& c) {
    if (c.rank() == 1) throw std::runtime_error("no more");
    c.barrier();
  });
  CHECK(texts[1] == "no more");
  for (const std::size_t rank : {0U, 2U}) {
    CHECK(texts[rank].find("called barrier, and rank 1 threw: no more") != std::string::npos);
  }
  const auto left = messages([](auto& c) {
    int x = 0;
    if (c.rank() == 0) c.recv(x, 2);
  });
  CHECK(left[0].find("rank 0 called recv of int from rank 2, and rank 2 has left") != std::string::npos);
}

TEST_CASE("of ranks that left, the error names the one that threw") {
  const auto texts = messages([](auto& c) {
    int x = 0;
    if (c.rank() == 0) return;
    if (c.rank() == 2) return c.recv(x, 1);
    CHECK_THROWS_AS(c.recv(x, 0), fanout::CommunicatorAbandoned);
    throw std::runtime_error("after rank 0 had left");
  });
  CHECK(texts[2].find("rank 2 called recv of int from rank 1, and rank 1 threw: after rank 0") != std::string::npos);
}

TEST_CASE("two threads that call collectives as one rank at once are refused") {
  on_ranks(1, [] {
    const ThreadGroup own;
    fanout::detail::RendezvousTags tags;
    MpiRendezvous rendezvous(own.group, {2}, tags);
    std::atomic<int> refused{0};
    std::atomic<int> passed{0};
    const auto meets = [&](std::size_t rank) {
      try {
        RendezvousCommunicator(rendezvous, rank, 2).barrier();
        ++passed;
      } catch (const fanout::Error& error) {
        CHECK(fanout_test::says(error.what(), "two threads call collectives as one rank at once", "rank 0"));
        ++refused;
      }
    };
    std::thread first(meets, 0);
    std::thread second(meets, 0);
    while (refused == 0) std::this_thread::yield();
    meets(1);
    first.join();
    second.join();
    CHECK(refused == 1);
    CHECK(passed == 2);
    rendezvous.leave(0, nullptr);
    rendezvous.leave(1, nullptr);
  });
}

TEST_CASE("a shard that throws before a collective is named on all ranks, alone") {
  for (const std::size_t count : {1U, 2U, 3U}) {
    on_ranks(count, [] {
      const ThreadGroup ranks;
      for (std::size_t bad = 0; bad < ranks.size(); ++bad) {
        const ParallelModel model{
            FailsOnRow{static_cast<double>(4 * bad + 2)}, fanout::host_devices(2), {.ranks = ranks}};
        const Tensor<double, 1> x = numbers({4 * ranks.rank(), 4 * ranks.rank() + 4});
        std::string text;
        try {
          model(x);
        } catch (const fanout::ReplicaError& error) {
          text = error.what();
          CHECK(error.failures().size() == 1);
          CHECK(error.failures()[0].shard == 2 * bad + 1);
        }
        CHECK(text.find("row of " + std::to_string(4 * bad + 2)) != std::string::npos);
        CHECK(model(numbers({1000, 1002}))(0) == 2.0 * static_cast<double>(ranks.size()));
      }
    });
  }
}
