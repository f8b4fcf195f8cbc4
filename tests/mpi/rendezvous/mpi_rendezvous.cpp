// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/rendezvous/mpi_rendezvous.hpp>

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <collective/communicator_conformance.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/mpi.hpp>
#include <fanout/plan/even_split.hpp>
#include <mpi/support/is_funneled.hpp>
#include <mpi/support/lost_messages.hpp>
#include <support/message_of.hpp>

// Collectives between the shards of all ranks. So many ranks of a rendezvous are shared out among the processes of
// MPI_COMM_WORLD, and some of these may have none. What ranks say to each other is tested in tests/mpi/threads.

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout::detail::EvenParts;
using fanout::detail::MpiGroup;
using fanout::detail::MpiRendezvous;
using fanout::mpi::Ranks;
using fanout_test::is_funneled;
using fanout_test::message_of;

bool any_thread_may_use_mpi() {
  if (is_funneled()) MESSAGE("skipped: needs MPI_THREAD_SERIALIZED");
  return !is_funneled();
}

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

struct RanksOverMpi {
  using communicator = RendezvousCommunicator;

  static EvenParts parts(std::size_t ranks) {
    int processes = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    return EvenParts(ranks, static_cast<std::size_t>(processes));
  }
  static fanout::RowRange own(std::size_t ranks) {
    int process = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &process);
    return parts(ranks)[static_cast<std::size_t>(process)];
  }

  static bool available(std::size_t) { return any_thread_may_use_mpi(); }
  static std::size_t here(std::size_t ranks) { return own(ranks).size(); }

  template <class F>
  static void run(std::size_t ranks, const F& f) {
    const MpiGroup group(MPI_COMM_WORLD);
    std::vector<std::size_t> shards;
    for (int process = 0; process < group.size(); ++process) {
      shards.push_back(parts(ranks)[static_cast<std::size_t>(process)].size());
    }
    static fanout::detail::RendezvousTags tags;
    MpiRendezvous rendezvous(group, shards, tags);
    std::vector<std::thread> threads;
    for (const std::size_t rank : own(ranks)) {
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
  }

  template <class T>
  static void share(std::vector<T>& all) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      int owner = 0;
      for (std::size_t p = 0; parts(all.size())[p].last <= rank; ++p) owner = static_cast<int>(p) + 1;
      if constexpr (std::is_trivially_copyable_v<T>) {
        MPI_Bcast(&all[rank], sizeof(T), MPI_BYTE, owner, MPI_COMM_WORLD);
      } else if constexpr (std::is_same_v<T, std::string>) {
        std::vector<char> letters(all[rank].begin(), all[rank].end());
        share_elements(letters, owner);
        all[rank].assign(letters.begin(), letters.end());
      } else {
        share_elements(all[rank], owner);
      }
    }
  }

  template <class T>
  static Tensor<T, 1> array(std::size_t, const std::vector<T>& elements) {
    return fanout_test::array_in(fanout::backend::Memory{}, elements);
  }
  template <class T>
  static std::vector<T> elements(const Tensor<T, 1>& array) {
    return fanout_test::elements_of(array);
  }

 private:
  template <class E>
  static void share_elements(std::vector<E>& elements, int owner) {
    std::size_t size = elements.size();
    MPI_Bcast(&size, sizeof(size), MPI_BYTE, owner, MPI_COMM_WORLD);
    elements.resize(size);
    MPI_Bcast(elements.data(), static_cast<int>(size * sizeof(E)), MPI_BYTE, owner, MPI_COMM_WORLD);
  }
};

struct Gradients {
  Tensor<double, 1> weight;
  float bias = 0;
};

/// Each shard gets the sums of all shards, and says which one it is.
struct Sums {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    auto comm = ctx.communicator();
    Gradients gradients{Tensor<double, 1>(1000), 0};
    for (const double each : x) gradients.weight[7] += each;
    gradients.bias = static_cast<float>(x.size());
    comm.all_reduce(gradients);
    Tensor<std::size_t, 1> ranks(ctx.size());
    comm.all_gather(ctx.rank(), ranks);
    bool in_order = comm.rank() == ctx.rank() && comm.size() == ctx.size();
    for (std::size_t i = 0; i < ranks.size(); ++i) in_order = in_order && ranks(i) == i;
    return std::tuple{gradients.weight[7], gradients.bias, in_order};
  }
};

Tensor<double, 1> numbers(fanout::RowRange rows) {
  Tensor<double, 1> made(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) made(i) = static_cast<double>(rows.first + i);
  return made;
}

}  // namespace

FANOUT_TEST_COMMUNICATOR(RanksOverMpi);

TEST_CASE("ctx.communicator() reaches the shards of all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (const int devices : {1, 2}) {
    if (devices > 1 && is_funneled()) {
      const ParallelModel model{Sums{}, fanout::host_devices(devices), {.ranks = ranks}};
      if (ranks.size() > 1) {
        CHECK(message_of<fanout::Error>([&] {
                model(numbers({0, 4}));
              }).find("MPI_THREAD_SERIALIZED") != std::string::npos);
      }
      continue;
    }
    const ParallelModel model{Sums{}, fanout::host_devices(devices), {.ranks = ranks}};
    const std::size_t all = 4 * ranks.size() + 1;
    for (int call = 0; call < 3; ++call) {
      const auto [sum, rows, in_order] = model(numbers(ranks.rows(all)));
      for (std::size_t i = 0; i < sum.size(); ++i) {
        CHECK(sum(i) == static_cast<double>(all * (all - 1) / 2));
        CHECK(rows(i) == static_cast<float>(all));
        CHECK(in_order(i));
      }
    }
  }
}

namespace {

/// Ten layers of gradients, in buckets of a few layers each.
struct InBuckets {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    std::vector<Tensor<double, 1>> layers;
    auto comm = ctx.communicator();
    auto buckets = comm.buckets({.first = 8'000, .others = 20'000});
    double sum = 0;
    for (const double each : x) sum += each;
    layers.reserve(10);
    for (int layer = 0; layer < 10; ++layer) {
      layers.emplace_back(1000);
      for (double& g : layers.back()) g = layer * sum;
      buckets.all_reduce_async(layers.back());
    }
    double rows = static_cast<double>(x.size());
    comm.all_reduce(rows);  // after the buckets
    bool right = buckets.ready();
    for (int layer = 0; layer < 10; ++layer) {
      const double sum_of_all = layer * rows * (rows - 1) / 2;
      for (const double g : layers[static_cast<std::size_t>(layer)]) right = right && g == sum_of_all;
    }
    return right;
  }
};

}  // namespace

TEST_CASE("buckets of gradients are reduced over the shards of all ranks, with one device at any thread level") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (const int devices : {1, 2}) {
    if (devices > 1 && !any_thread_may_use_mpi()) continue;
    const ParallelModel model{InBuckets{}, fanout::host_devices(devices), {.ranks = ranks}};
    for (int call = 0; call < 5; ++call) {
      const auto right = model(numbers(ranks.rows(4 * ranks.size() + 1)));
      for (std::size_t i = 0; i < right.size(); ++i) CHECK(right(i));
    }
  }
}

TEST_CASE("calls in flight at the same time do not mix up their collectives") {
  if (!any_thread_may_use_mpi()) return;
  const Ranks ranks{MPI_COMM_WORLD};
  const ParallelModel one{Sums{}, fanout::host_devices(2), {.ranks = ranks}};
  const ParallelModel other{Sums{}, fanout::host_devices(2), {.ranks = ranks}};
  const Tensor<double, 1> x = numbers({0, 4});
  const Tensor<double, 1> y = numbers({1, 5});
  auto first = one.async(x);
  auto second = other.async(y);
  CHECK(std::get<0>(second.get())(0) == 10.0 * static_cast<double>(ranks.size()));
  CHECK(std::get<0>(first.get())(1) == 6.0 * static_cast<double>(ranks.size()));
}

namespace {

/// Its forward is not const.
struct Tally {
  double all = 0;

  double forward(fanout::Context auto& ctx, View<const double, 1> x) {
    double sum = 0;
    for (const double each : x) sum += each;
    ctx.communicator().all_reduce(sum);
    all += sum;
    return all;
  }
};

}  // namespace

TEST_CASE("a forward that is not const has collectives, with one device at any thread level") {
  const Ranks ranks{MPI_COMM_WORLD};
  const auto all = static_cast<double>(3 * ranks.size());
  const ParallelModel one{Tally{}, fanout::host_devices(1), {.ranks = ranks}};
  for (int call = 1; call <= 3; ++call) CHECK(one(numbers({1, 3}))(0) == call * all);
  const ParallelModel two{Tally{}, fanout::host_devices(2), {.ranks = ranks}};
  if (!is_funneled()) {
    for (int call = 1; call <= 3; ++call) CHECK(two(numbers({1, 3}))(1) == call * all);
    auto first = one.async(numbers({1, 3}));
    CHECK(one(numbers({1, 3}))(0) == 5 * all);  // after the one before
    CHECK(first.get()(0) == 4 * all);
  } else if (ranks.size() > 1) {
    const auto needs_threads = [](const std::string& text) {
      CHECK(text.find("MPI_THREAD_SERIALIZED") != std::string::npos);
    };
    needs_threads(message_of<fanout::Error>([&] { two(numbers({1, 3})); }));
    needs_threads(message_of<fanout::Error>([&] { one.async(numbers({1, 3})).get(); }));
    CHECK(one(numbers({1, 3}))(0) == 4 * all);
  }
}

namespace {

/// Adds up over all shards, later than its caller goes on.
struct AddsLater {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    double sum = x(0);
    ctx.communicator().all_reduce(sum);
    return fanout::pmin(sum);
  }
};

/// The calls of a replica run in order.
struct AddsInOrder {
  int calls = 0;

  auto forward(fanout::Context auto& ctx, View<const double, 1> x) {
    ++calls;
    double sum = x(0);
    ctx.communicator().all_reduce(sum);
    return fanout::pmin(sum);
  }
};

Tensor<double, 1> ones(std::size_t rows) { return Tensor<double, 1>::full({rows}, 1); }

}  // namespace

TEST_CASE("a rank that waits for all others lets its shards send meanwhile") {
  if (!any_thread_may_use_mpi()) return;
  const fanout::Duration deadlines[]{fanout::Duration::forever(), std::chrono::seconds(60)};
  for (const fanout::Duration& deadline : deadlines) {
    const Ranks ranks{MPI_COMM_WORLD, {.deadline = deadline}};
    const Ranks others{MPI_COMM_WORLD, {.deadline = deadline}};
    const ParallelModel model{AddsLater{}, fanout::host_devices(2), {.deadline = deadline, .ranks = ranks}};
    for (const Ranks* const group : {&ranks, &others}) {
      auto pending = model.async(ones(2));
      // These come to gather() when the shards of the others have sent messages, from other threads.
      if (ranks.rank() != 0) pending.wait();
      static_cast<void>(group->gather(ones(1), 0));
      CHECK(pending.get() == 2 * static_cast<double>(ranks.size()));
    }
  }
}

TEST_CASE("ranks with one device and with two make the steps of ordered calls in one order") {
  if (!any_thread_may_use_mpi()) return;
  const Ranks ranks{MPI_COMM_WORLD};
  const std::size_t devices = ranks.rank() == 0 ? 1 : 2;
  const ParallelModel model{AddsInOrder{}, fanout::host_devices(static_cast<int>(devices)), {.ranks = ranks}};
  const auto shards = static_cast<double>(2 * ranks.size() - 1);
  for (int call = 0; call < 5; ++call) {
    auto pending = model.async(ones(2));
    CHECK(model(ones(2)) == shards);
    CHECK(pending.get() == shards);
  }
}

TEST_CASE("a result that a rank does not take ends the call on all ranks, also if their shards still meet") {
  if (!any_thread_may_use_mpi()) return;
  const Ranks ranks{MPI_COMM_WORLD};
  const ParallelModel model{AddsLater{}, fanout::host_devices(2), {.ranks = ranks}};
  if (ranks.size() == 1) return;
  for (int call = 0; call < 3; ++call) {
    const std::string text = message_of<fanout::Error>([&] {
      auto pending = model.async(ones(2));
      if (ranks.rank() == 0) throw fanout::Error("dropped");
      pending.get();
    });
    CHECK(text.find(ranks.rank() == 0 ? "dropped" : "was not taken") != std::string::npos);
    CHECK(model(ones(2)) == 2 * static_cast<double>(ranks.size()));
  }
}

TEST_CASE("calls with other numbers of shards meet at the same time") {
  if (!any_thread_may_use_mpi()) return;
  const Ranks ranks{MPI_COMM_WORLD};
  const ParallelModel later{AddsLater{}, fanout::host_devices(2), {.ranks = ranks}};
  const ParallelModel now{AddsInOrder{}, fanout::host_devices(2), {.ranks = ranks}};
  const auto n = static_cast<double>(ranks.size());
  CHECK(now(ones(2)) == 2 * n);
  auto pending = later.async(ones(2));
  for (int call = 0; call < 3; ++call) CHECK(now(ones(1)) == n);
  CHECK(pending.get() == 2 * n);
}

TEST_CASE("a shard that throws before it meets others releases them while its result waits") {
  if (!any_thread_may_use_mpi()) return;
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const auto meets = [](fanout::Context auto& ctx, View<const double, 1> x) {
    if (x(0) < 0) throw std::runtime_error("less than 0");
    double sum = x(0);
    ctx.communicator().all_reduce(sum);
    return fanout::pmin(sum);
  };
  const ParallelModel model{meets, fanout::host_devices(1), {.ranks = ranks}};
  auto pending = model.async(Tensor<double, 1>::full({1}, ranks.rank() == 1 ? -1.0 : 1.0));
  pending.wait();
  MPI_Barrier(MPI_COMM_WORLD);  // rank 1 takes its result after the shards of the others have ended
  CHECK(message_of<fanout::ReplicaError>([&] { pending.get(); }).find("less than 0") != std::string::npos);
}

TEST_CASE("a rank that throws after a collective takes no array from others that still receive it") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() < 3) return;
  constexpr std::size_t count = 1'000'000;
  std::size_t received = 0;
  const auto broadcast = [&received](fanout::Context auto& ctx, View<const double, 1>) {
    std::vector<double> array(count, ctx.rank() == 0 ? 1.0 : 0.0);  // goes back to the system when forward ends
    ctx.communicator().broadcast(array, 0);
    received = static_cast<std::size_t>(std::count(array.begin(), array.end(), 1.0));
    if (ctx.rank() == 1) throw std::runtime_error("has enough");
    return fanout::first(0);
  };
  const ParallelModel model{broadcast, fanout::host_devices(1), {.ranks = ranks}};
  fanout_test::receives_late = ranks.rank() == 2;
  const std::string text = message_of<fanout::ReplicaError>([&] { model(Tensor<double, 1>(1)); });
  fanout_test::receives_late = false;
  CHECK(text.find("has enough") != std::string::npos);
  CHECK(received == count);
}
