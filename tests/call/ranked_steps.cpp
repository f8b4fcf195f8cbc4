// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/call/ranked_steps.hpp>

#include <doctest/doctest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>
#include <support/message_of.hpp>
#include <support/thread_ranks.hpp>

// Threads stand for processes. tests/mpi has the same over MPI.

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::on_thread_ranks;
using fanout_test::ThreadRanks;
using namespace std::chrono_literals;

struct Drawn {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    auto drawn = fanout::output<std::uint32_t>(ctx);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      drawn(i) = ctx.random(i)();
      sum += x(i);
    }
    const double mean = x.size() == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(x.size());
    return std::tuple{drawn,
                      fanout::psum(std::map<std::string, double>{{"sum", sum}}),
                      fanout::pmean(std::vector<Tensor<double, 1>>{Tensor<double, 1>(1), filled(mean)}),
                      fanout::pmax(std::optional<std::size_t>(ctx.rows().last)),
                      ctx.rank(),
                      fanout::each(std::vector<double>{sum})};
  }
  static Tensor<double, 1> filled(double value) { return Tensor<double, 1>::full({2}, value); }
};

struct Fields {
  fanout::Sum<int> rows{10};
  fanout::Mean<double> mean;
  fanout::First<Tensor<double, 1>> begin{Tensor<double, 1>(1)};

  double forward(View<const double, 1> x) {
    rows.value += static_cast<int>(x.size());
    double sum = 0;
    for (const double each : x) sum += each;
    mean = sum / static_cast<double>(x.size());
    if (x.size() != 0) begin.value(0) = x(0);
    if (x.size() != 0 && x(0) < 0) throw std::runtime_error("less than 0");
    return sum;
  }
};

/// Is late if its first row is 0.
struct Waits {
  fanout::Sum<int> calls;

  void forward(fanout::Context auto& ctx, View<const double, 1> x) {
    calls.value += 1;
    if (x(0) != 0) return;
    while (!ctx.stop_requested()) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(2ms);
  }
};

Tensor<double, 1> numbers(std::size_t first, std::size_t count) {
  Tensor<double, 1> made(count);
  for (std::size_t i = 0; i < count; ++i) made(i) = static_cast<double>(first + i);
  return made;
}

}  // namespace

TEST_CASE("rows, shards and random numbers count over processes, and reductions weigh all rows") {
  const ParallelModel alone{Drawn{}, fanout::host_devices(1), {.seed = 3}};
  const auto expected = alone(numbers(0, 9));
  on_thread_ranks(3, [&](const ThreadRanks& ranks) {
    const ParallelModel model{Drawn{}, fanout::host_devices(2), {.seed = 3, .ranks = &ranks}};
    const std::size_t first = ranks.rank() == 0 ? 0 : 5;
    const std::size_t count = ranks.rank() == 0 ? 5 : ranks.rank() == 1 ? 0 : 4;
    const auto [drawn, sums, means, last, shards, lists] = model(numbers(first, count));
    for (std::size_t i = 0; i < count; ++i) CHECK(drawn(i) == std::get<0>(expected)(first + i));
    CHECK(sums.at("sum") == 36);
    CHECK(means[0](0) == 0);
    CHECK(means[1](1) == doctest::Approx(4).epsilon(1e-15));
    CHECK(*last == 9);
    CHECK(shards(0) == ranks.rank() * 2);
    CHECK(lists.size() == 1);
  });
}

TEST_CASE("combined fields are those of all processes") {
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    ParallelModel model{Fields{}, fanout::host_devices(2), {.ranks = &ranks}};
    for (int call = 1; call <= 2; ++call) {
      model(ranks.rank() == 0 ? numbers(0, 2) : numbers(2, 5));
      CHECK(model.model().rows.value == 10 + 7 * call);
      CHECK(model.model().mean.value == doctest::Approx(3).epsilon(1e-15));
      CHECK(model.model().begin.value(0) == 0);
    }
    model(numbers(ranks.rank(), ranks.rank() * 3));
    CHECK(model.model().rows.value == 27);
    CHECK(model.model().begin.value(0) == 1);
  });
}

TEST_CASE("a process that fails ends the call on all, and the model works afterwards") {
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    ParallelModel model{Fields{}, fanout::host_devices(1), {.ranks = &ranks}};
    Tensor<double, 1> x = numbers(1, 2);
    x(0) = ranks.rank() == 1 ? -1 : 1;
    CHECK(message_of<fanout::Error>([&] { model(x); }).find("rows [2, 4)") != std::string::npos);
    CHECK(model.model().rows.value == 10);
    const auto rows = ranks.rank() == 0 ? std::size_t{2} : std::size_t{3};
    const ParallelModel two{[](View<const double, 1> a, View<const double, 1>) { return fanout::psum(a(0)); },
                            fanout::host_devices(1),
                            {.ranks = &ranks}};
    CHECK(message_of<fanout::Error>([&] { two(numbers(0, 2), numbers(0, rows)); }).find("3") != std::string::npos);
    CHECK(two(numbers(4, 2), numbers(0, 2)) == 8);
    model(numbers(1, 2));
    CHECK(model.model().rows.value == 14);
  });
}

TEST_CASE("a result that one process does not take ends the call on all") {
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    const ParallelModel model{
        [](View<const double, 1> x) { return fanout::psum(x(0)); }, fanout::host_devices(1), {.ranks = &ranks}};
    const Tensor<double, 1> x = numbers(1, 1);
    CHECK(model.async(x).get() == 2);
    auto pending = std::optional(model.async(x));
    if (ranks.rank() == 0) {
      pending.reset();
    } else {
      CHECK(message_of<fanout::Error>([&] { pending->get(); }).find("was not taken") != std::string::npos);
    }
    CHECK(model(x) == 2);
  });
}

TEST_CASE("a Range counts the rows of all processes") {
  on_thread_ranks(3, [](const ThreadRanks& ranks) {
    const auto rows = [](fanout::Context auto& ctx, fanout::RowRange own) {
      return std::tuple{own.first, own.last, ctx.rows() == own};
    };
    const ParallelModel model{rows, fanout::host_devices(2), {.ranks = &ranks}};
    const auto [first, last, same] = model(fanout::Range{4});
    for (std::size_t shard = 0; shard < 2; ++shard) {
      CHECK(first(shard) == 4 * ranks.rank() + 2 * shard);
      CHECK(last(shard) == first(shard) + 2);
      CHECK(same(shard));
    }
  });
}

TEST_CASE("one process alone makes no step") {
  on_thread_ranks(1, [](const ThreadRanks& ranks) {
    ParallelModel model{Fields{}, fanout::host_devices(2), {.ranks = &ranks}};
    CHECK(model(numbers(0, 2)).size() == 2);
  });
}

namespace {

struct Meets {
  double bad = -1;

  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    auto ranks = ctx.communicator();
    double sum = 0;
    for (const double each : x) {
      if (each == bad) throw std::runtime_error("a bad row");
      sum += each;
    }
    ranks.all_reduce(sum);
    Tensor<std::size_t, 1> all(ranks.size());
    ranks.all_gather(ctx.rank(), all);
    std::size_t in_order = 0;
    for (std::size_t i = 0; i < all.size(); ++i) in_order += all(i) == i ? 1 : 0;
    return std::tuple{sum, in_order};
  }
};

/// Changes, so that its calls are kept in order.
struct MeetsAndChanges : Meets {
  fanout::PerReplica<int> calls{0};

  auto forward(fanout::Context auto& ctx, View<const double, 1> x) {
    ++*calls;
    return Meets::forward(ctx, x);
  }
};

template <class Model>
void check_meeting(std::size_t devices) {
  on_thread_ranks(3, [devices](const ThreadRanks& ranks) {
    const ParallelModel model{Model{}, fanout::host_devices(static_cast<int>(devices)), {.ranks = &ranks}};
    for (int call = 0; call < 3; ++call) {
      Tensor<double, 1> x(4 + ranks.rank());
      for (double& each : x) each = 1;
      const auto [sums, in_order] = model(x);
      REQUIRE(sums.size() == devices);
      for (std::size_t i = 0; i < devices; ++i) {
        CHECK(sums(i) == 15);
        CHECK(in_order(i) == 3 * devices);
      }
    }
  });
}

}  // namespace

TEST_CASE("shards of all processes meet in ctx.communicator()") {
  check_meeting<Meets>(1);
  check_meeting<Meets>(2);
}

TEST_CASE("shards of a changing model meet those of other processes, also in asynchronous calls") {
  check_meeting<MeetsAndChanges>(2);
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    const ParallelModel model{Meets{}, fanout::host_devices(2), {.ranks = &ranks}};
    auto pending = model.async(Tensor<double, 1>::full({2}, 3));
    CHECK(std::get<0>(pending.get())(1) == 12);
  });
}

TEST_CASE("a shard that throws releases the shards of other processes, which all tell of it") {
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    const ParallelModel model{Meets{.bad = 7}, fanout::host_devices(2), {.ranks = &ranks}};
    Tensor<double, 1> x(2);
    if (ranks.rank() == 1) x(0) = 7;
    CHECK(message_of<fanout::Error>([&] { model(x); }).find("a bad row") != std::string::npos);
    x(0) = 0;
    CHECK(std::get<0>(model(x))(0) == 0);
  });
}

TEST_CASE("a process that does not come by the deadline is named on all, and they go on with the next call") {
  std::barrier<> both(2);
  on_thread_ranks(2, [&both](const ThreadRanks& ranks) {
    ParallelModel hasty{Fields{}, fanout::host_devices(1), {.deadline = 20ms, .ranks = &ranks}};
    ParallelModel patient{Fields{}, fanout::host_devices(1), {.deadline = 60s, .ranks = &ranks}};
    const bool is_late = ranks.rank() == 1;
    if (is_late) both.arrive_and_wait();
    for (int call = 0; call < 2; ++call) {
      std::string text;
      try {
        hasty(numbers(1, 2));
      } catch (const fanout::Timeout& timeout) {
        text = timeout.what();
        CHECK(timeout.late().size() == 0);
        REQUIRE(timeout.missing().size() == 1);
        CHECK(timeout.missing()[0] == 1);
        const fanout::Timeout copy = timeout;
        CHECK(copy.missing()[0] == 1);
      }
      CHECK(text.find("late for 20 ms: ") != std::string::npos);
    }
    if (!is_late) both.arrive_and_wait();
    CHECK(hasty.model().rows.value == 10);
    patient(numbers(1, 2));
    CHECK(patient.model().rows.value == 14);
  });
}

TEST_CASE("a process whose shards are late combines nothing, and tells the others") {
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    const bool is_late = ranks.rank() == 1;
    ParallelModel model{Waits{}, fanout::host_devices(1), {.deadline = is_late ? 500ms : 60s, .ranks = &ranks}};
    const std::string text = message_of<fanout::Error>([&] { model(numbers(is_late ? 0 : 1, 1)); });
    CHECK(text.find("1 of 1 shard took longer than the deadline of 500 ms") != std::string::npos);
    CHECK(model.model().calls.value == 0);
    model(numbers(1, 1));
    CHECK(model.model().calls.value == 2);
  });
}

TEST_CASE("a result that is taken long after the deadline waits for the others as long again") {
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    const ParallelModel model{[](View<const double, 1> x) { return fanout::psum(x(0)); },
                              fanout::host_devices(1),
                              {.deadline = 1000ms, .ranks = &ranks}};
    auto pending = model.async(numbers(1, 1));
    std::this_thread::sleep_for(ranks.rank() == 0 ? 1100ms : 1200ms);
    CHECK(pending.get() == 2);
  });
}
