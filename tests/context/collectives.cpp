// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <unistd.h>

#include <fanout/array/to.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>

#include "contributing/logging_device.hpp"
#include "device/remote_device.hpp"
#include "support/fork.hpp"
#include "support/message_of.hpp"
#include "support/skip.hpp"

using contributing::LoggingDevice;
using fanout::CommunicatorAbandoned;
using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::ReplicaError;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;
using Numbers = std::vector<double>;

namespace {

// [gradients]
struct Gradients {
  Tensor<double, 1> weight;
  double bias;
};

/// The gradients of the whole batch on every shard, which then could make the same step.
struct Step {
  double forward(Context auto& ctx, View<const double, 1> x) const {
    Gradients gradients{Tensor<double, 1>(2), 0};
    for (const double v : x) gradients.weight[0] += v;
    gradients.bias = static_cast<double>(x.size());
    ctx.communicator().all_reduce(gradients);
    return gradients.weight[0] / gradients.bias;
  }
};
// [/gradients]

Tensor<double, 1> backward(std::size_t layer, View<const double, 1> x) {
  Tensor<double, 1> gradient(100'000);  // 800 kB
  const double sum = std::accumulate(x.begin(), x.end(), 0.0);
  for (double& g : gradient) g = static_cast<double>(layer + 1) * sum;
  return gradient;
}

// [buckets]
/// Each layer's gradient is reduced while those of the layers below are computed.
struct Backward {
  std::size_t layers;
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    std::vector<Tensor<double, 1>> gradients(layers);
    auto communicator = ctx.communicator();
    auto buckets = communicator.buckets();
    for (std::size_t layer = layers; layer-- > 0;) {
      gradients[layer] = backward(layer, x);
      buckets.all_reduce_async(gradients[layer]);
    }
    buckets.wait();  // now `gradients` are those of the whole batch
    return fanout::first(std::move(gradients));
  }
};
// [/buckets]

/// Its `forward` is defined elsewhere, and names its context.
struct DeclaredStep {
  double forward(fanout::ShardContext<fanout::HostDevice, DeclaredStep>& ctx, View<const double, 1> x);
};
double DeclaredStep::forward(fanout::ShardContext<fanout::HostDevice, DeclaredStep>& ctx, View<const double, 1> x) {
  auto sum = std::accumulate(x.begin(), x.end(), 0.0);
  ctx.communicator().all_reduce(sum);
  return sum;
}

/// Its shards cannot meet, although it may change and has a context.
struct Lonely {
  double forward(Context auto& ctx, View<const double, 1> x) { return static_cast<double>(ctx.rank() + x.size()); }
};

/// Adds up over all shards, as often as it is told.
struct Adds {
  int times = 1;
  double forward(Context auto& ctx, std::span<const double> x) const {
    double sum = 0;
    for (int i = 0; i < times; ++i) {
      sum = std::accumulate(x.begin(), x.end(), 0.0);
      ctx.communicator().all_reduce(sum);
    }
    return sum;
  }
};

/// The same, and changes its replica.
struct AddsAndCounts {
  int calls = 0;
  double forward(Context auto& ctx, std::span<const double> x) {
    ++calls;
    return Adds().forward(ctx, x);
  }
};

Numbers hundred() {
  Numbers x(100);
  std::iota(x.begin(), x.end(), 1.0);
  return x;
}
constexpr double sum_of_hundred = 5050;

bool all_are(const Tensor<double, 1>& values, std::size_t count) {
  for (const double value : values) {
    if (value != sum_of_hundred) return false;
  }
  return values.size() == count;
}

/// Logs nothing for as long as it lives.
struct Silent {
  Silent() { LoggingDevice::log = file; }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;
  ~Silent() {
    LoggingDevice::log = stderr;
    std::fclose(file);
  }
  std::FILE* file = std::tmpfile();
};

}  // namespace

TEST_CASE("gradients are added up inside forward") {
  const ParallelModel model{Step{}, host_devices(3)};
  const Tensor<double, 1> means = model(hundred());
  CHECK(means[0] == 50.5);
  CHECK(means[2] == 50.5);
}

TEST_CASE("gradients are added up in buckets while forward goes on") {
  for (const int devices : {1, 2, 3, 7}) {
    const ParallelModel model{Backward{50}, host_devices(devices)};  // 40 MB: buckets of 2, 32 and 16 layers
    const auto all = model(hundred());
    REQUIRE(all.size() == 50);
    for (std::size_t layer = 0; layer < 50; ++layer) {
      const auto wrong = [layer](double g) { return g != static_cast<double>(layer + 1) * sum_of_hundred; };
      CHECK(std::none_of(all[layer].begin(), all[layer].end(), wrong));
      CHECK(all[layer].size() == 100'000);
    }
  }
}

TEST_CASE("a shard that throws while its buckets run ends the call with its own error") {
  const ParallelModel model{[](Context auto& ctx, View<const double, 1> x) {
                              Tensor<double, 1> gradient(100);
                              auto communicator = ctx.communicator();
                              auto buckets = communicator.buckets({.first = 8, .others = 8});
                              for (int i = 0; i < 10; ++i) {
                                if (i == 5 && ctx.rank() == 1) throw std::runtime_error("a gradient is NaN");
                                buckets.all_reduce_async(gradient);
                              }
                              buckets.wait();
                              return static_cast<double>(x.size());
                            },
                            host_devices(3)};
  const std::string text = message_of<ReplicaError>([&] { static_cast<void>(model(hundred())); });
  CHECK(says(text, "failed on 1 of 3", "a gradient is NaN"));
}

TEST_CASE("a model that changes may have shards that meet, also in a forward that is declared only, or none") {
  const auto x = fanout::tensor<double>({1, 1, 1, 1});
  CHECK(ParallelModel{DeclaredStep{}, host_devices(2)}(x) == fanout::tensor<double>({4, 4}));
  CHECK(ParallelModel{Lonely{}, host_devices(2)}(x) == fanout::tensor<double>({2, 3}));
}

TEST_CASE("a group of reduce_scatter and all_gather passes arrays of many elements") {
  constexpr std::size_t each = 1300;
  const auto passes = [](Context auto& ctx, fanout::RowRange) {
    const auto own = static_cast<int>(ctx.rank());
    std::vector<int> from(3 * each);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i) + 10000 * own;
    std::vector<int> greatest(each);
    std::vector<int> sums(each);
    std::vector<int> all(3 * each);
    auto ranks = ctx.communicator();
    {
      const auto group = ranks.group();
      ranks.reduce_scatter(from, greatest, fanout::backend::Reduction::max);
      ranks.reduce_scatter(from, sums);
      ranks.all_gather(std::span(from).first(each), all);
    }
    int wrong = 0;
    for (std::size_t i = 0; i < each; ++i) {
      const auto at = static_cast<int>(each * ctx.rank() + i);
      wrong += greatest[i] == at + 20000 && sums[i] == 3 * at + 30000 ? 0 : 1;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      wrong += all[i] == static_cast<int>(i % each + 10000 * (i / each)) ? 0 : 1;
    }
    return wrong;
  };
  for (const int devices : {3, 1}) {
    // All shards on devices of their own, and all on one.
    const fanout::Plan plan{{.rows = {0, 1}, .device = 0},
                            {.rows = {1, 2}, .device = devices == 1 ? 0U : 1U},
                            {.rows = {2, 3}, .device = devices == 1 ? 0U : 2U}};
    const auto with = [plan](std::size_t rows, std::size_t) {
      return rows == 0 ? fanout::Plan{{.rows = {}, .device = 0}} : plan;
    };
    const ParallelModel model{passes, host_devices(devices), fanout::Options{.split = with}};
    const auto wrong = model(fanout::Range{3});
    CHECK(std::vector<int>(wrong.begin(), wrong.end()) == std::vector<int>(3));
  }
}

TEST_CASE("eight shards on eight devices run at once, however many cores there are") {
  const ParallelModel model{Adds{.times = 20}, host_devices(8)};
  for (int i = 0; i < 20; ++i) CHECK(all_are(model(hundred()), 8));
}

TEST_CASE("shards of devices without a thread run at once, too") {
  const Silent silent;
  const ParallelModel model{Adds{.times = 3}, fanout::AllVisible<LoggingDevice>{}};
  for (int i = 0; i < 3; ++i) CHECK(all_are(model(hundred()), 2));
  auto first = model.async(hundred());
  auto second = model.async(hundred());
  CHECK(all_are(second.get(), 2));
  CHECK(all_are(first.get(), 2));
}

TEST_CASE("more shards than devices run at once") {
  const auto devices = host_devices(2);
  const fanout::Plan plan{
      {.rows = {0, 30}, .device = 1}, {.rows = {30, 60}, .device = 1}, {.rows = {60, 100}, .device = 0}};
  const auto inputs = fanout::scatter(plan, hundred());
  const auto outputs = fanout::apply(fanout::replicate(Adds{}, devices), inputs);
  for (std::size_t i = 0; i < 3; ++i) CHECK(outputs[i] == sum_of_hundred);
}

TEST_CASE("calls from two threads on the same devices do not wait for each other") {
  const ParallelModel model{Adds{}, host_devices(4)};
  std::array<std::thread, 2> threads;
  std::atomic<int> right{0};
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (int i = 0; i < 40; ++i) right += all_are(model(hundred()), 4) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 80);
}

TEST_CASE("calls from three threads that change their replicas take turns") {
  const ParallelModel model{AddsAndCounts{}, host_devices(4)};
  std::array<std::thread, 3> threads;
  std::atomic<int> right{0};
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads[t] = std::thread([&, t] {
      for (int i = 0; i < 40; ++i) {
        right += all_are(t == 0 ? model.async(hundred()).get() : model(hundred()), 4) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 120);
  CHECK(model.replica(3).model().calls == 120);
}

TEST_CASE("asynchronous calls with collectives may be taken in any order or never") {
  const ParallelModel model{Adds{}, host_devices(3)};
  const ParallelModel changing{AddsAndCounts{}, host_devices(3)};
  std::vector<fanout::Pending<Tensor<double, 1>>> pending;
  for (int i = 0; i < 8; ++i) {
    pending.push_back(model.async(hundred()));
    pending.push_back(changing.async(hundred()));
  }
  for (std::size_t i = pending.size(); i > 4; --i) CHECK(all_are(pending[i - 1].get(), 3));
}

TEST_CASE("a model with collectives inside a model with collectives, on the same devices") {
  const ParallelModel inner{Adds{}, host_devices(3)};
  const auto calls_inner = [&inner](Context auto& ctx, std::span<const double> x) {
    double sum = inner(x)[0];
    ctx.communicator().all_reduce(sum);
    return sum;
  };
  const ParallelModel outer{calls_inner, host_devices(3)};
  CHECK(all_are(outer(hundred()), 3));
}

TEST_CASE("a shard that throws releases the others, and is the only failure") {
  const auto fails = [](Context auto& ctx, int) {
    if (ctx.rank() == 2) throw std::runtime_error("boom");
    ctx.communicator().barrier();
    ctx.communicator().barrier();
  };
  const ParallelModel model{fails, host_devices(4)};
  for (int i = 0; i < 10; ++i) {
    try {
      model(fanout::on_all(), 1);
      CHECK(false);
    } catch (const ReplicaError& error) {
      REQUIRE(error.failures().size() == 1);
      CHECK(error.failures()[0].shard == 2);
      CHECK(error.get_if<std::runtime_error>() != nullptr);
    }
  }
  try {
    model.async(fanout::on_all(), 1).get();
    CHECK(false);
  } catch (const ReplicaError& error) {
    CHECK(error.failures().size() == 1);
  }
}

TEST_CASE("a shard that returns early releases the others, which say so") {
  const auto returns = [](Context auto& ctx, int) {
    if (ctx.rank() != 0) ctx.communicator().barrier();
  };
  const ParallelModel model{returns, host_devices(3)};
  for (int i = 0; i < 10; ++i) {
    try {
      model(fanout::on_all(), 1);
      CHECK(false);
    } catch (const ReplicaError& error) {
      CHECK(error.failures().size() == 2);
      const auto* abandoned = error.get_if<CommunicatorAbandoned>();
      REQUIRE(abandoned != nullptr);
      CHECK(abandoned->rank() == 0);
      CHECK(says(abandoned->what(), "rank 1 called barrier", "rank 0 has left"));
    }
  }
}

TEST_CASE("a released shard may go on, and the call still reports the shard that failed") {
  std::atomic<int> released{0};
  const auto fails = [&released](Context auto& ctx, int) {
    if (ctx.rank() == 1) throw std::runtime_error("boom");
    try {
      ctx.communicator().barrier();
    } catch (const CommunicatorAbandoned&) {
      ++released;
    }
  };
  const ParallelModel model{fails, host_devices(3)};
  CHECK_THROWS_AS(model(fanout::on_all(), 1), ReplicaError);
  CHECK(released == 2);
}

TEST_CASE("different collectives are an error on all shards, and the model can be called again") {
  std::atomic<bool> wrong{true};
  const auto differs = [&wrong](Context auto& ctx, int) {
    float x = 1;
    if (ctx.rank() == 1 && wrong) return ctx.communicator().barrier();
    ctx.communicator().all_reduce(x);
  };
  const ParallelModel model{differs, host_devices(3)};
  const std::string text = message_of<ReplicaError>([&] { model(fanout::on_all(), 1); });
  CHECK(
      says(text, "3 of 3", "rank 0 called all_reduce(sum) of float, rank 1 called barrier, rank 2 called all_reduce"));
  wrong = false;
  model(fanout::on_all(), 1);
}

TEST_CASE("a deadline breaks no collective") {
  const auto slow = [](Context auto& ctx, int) {
    if (ctx.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    int count = 1;
    ctx.communicator().all_reduce(count);
    return count;
  };
  const ParallelModel model{slow, host_devices(2), fanout::Options{.deadline = std::chrono::milliseconds(2)}};
  CHECK_THROWS_AS(model(fanout::on_all(), 1), fanout::Timeout);
}

TEST_CASE("one collective takes arrays in device memories and in host memory") {
  const auto adds = [](Context auto& ctx, int) {
    const auto own = fanout::empty<float>(ctx, 3);
    const std::array<float, 3> here{1, 2, static_cast<float>(ctx.rank())};
    fanout::backend::transfer(ctx.device().memory(), own.data(), fanout::host_memory, here.data(), sizeof here);
    ctx.communicator().all_reduce(own);
    std::array<float, 3> sums{};
    fanout::backend::transfer({}, sums.data(), own.space(), own.data(), sizeof sums);
    return sums[0] + 10 * sums[1] + 100 * sums[2];
  };
  const auto devices = fanout_test::remote_devices(2) | host_devices(1);
  const auto outputs = fanout::apply(fanout::replicate(adds, devices), fanout::scatter(devices, 1));
  for (std::size_t i = 0; i < 3; ++i) CHECK(outputs[i] == 3 + 60 + 300);
}

namespace {

/// Adds up what lies in remote memories, where it lies.
class RemoteTransport final : public fanout::backend::CollectiveTransport {
 public:
  static inline std::atomic<int> opened{0}, closed{0}, aborted{0}, groups{0}, settled{0};
  static inline std::atomic<bool> fails{false};
  static inline std::atomic<int> failed_rank{-1};  // whose device fails

  fanout::backend::TransportRanks* open(std::span<const fanout::DeviceId> devices) const override {
    CHECK(devices.size() == 2);
    CHECK(devices[1] == fanout::DeviceId{.kind = "remote", .index = 1});
    ++opened;
    static Ranks ranks;
    return &ranks;
  }

 private:
  struct Ranks final : fanout::backend::TransportRanks {
    bool takes(std::size_t, const fanout::backend::Collective& call) const noexcept override {
      return call.kind == fanout::backend::Collective::Kind::all_reduce && !(call.to_space == fanout::host_memory);
    }
    void run(std::span<const fanout::backend::RankedCall> calls) override {
      ++groups;
      if (fails) throw fanout::Error("the transport is broken");
      const std::size_t each = calls.size() / 2;  // calls of rank 0, then those of rank 1
      for (std::size_t i = 0; i < each; ++i) {
        CHECK(calls[i].rank == 0);
        CHECK(calls[each + i].rank == 1);
        auto* const a = fanout_test::RemoteMemory::reach(static_cast<float*>(calls[i].call->to));
        auto* const b = fanout_test::RemoteMemory::reach(static_cast<float*>(calls[each + i].call->to));
        for (std::size_t k = 0; k < calls[i].call->count; ++k) a[k] = b[k] = a[k] + b[k];
      }
    }
    void abort() noexcept override { ++aborted; }
    std::exception_ptr failure(std::size_t rank) const noexcept override {
      if (failed_rank != static_cast<int>(rank)) return nullptr;
      return std::make_exception_ptr(fanout::OutOfMemory("the device is lost"));
    }
    void settle() noexcept override { ++settled; }
    void close() noexcept override { ++closed; }
  };
};
constexpr RemoteTransport remote_transport;

/// Adds up two arrays of its own memory and one of the host's at once.
struct AddsThree {
  float forward(Context auto& ctx, int) const {
    const std::array<float, 2> here{1, 2};
    std::array<View<float, 1>, 2> there{fanout::empty<float>(ctx, 2), fanout::empty<float>(ctx, 2)};
    for (const auto& view : there) {
      fanout::backend::transfer(ctx.device().memory(), view.data(), fanout::host_memory, here.data(), sizeof here);
    }
    auto tree = std::tuple{there, static_cast<float>(ctx.rank())};
    ctx.communicator().all_reduce(tree);
    std::array<float, 2> back{};
    fanout::backend::transfer({}, back.data(), there[1].space(), there[1].data(), sizeof back);
    return back[0] + 10 * back[1] + 100 * std::get<1>(tree);
  }
};

}  // namespace

TEST_CASE("devices use the communicator chosen in Options, and other arrays go through the host") {
  const auto model = [] {
    return ParallelModel{AddsThree{}, fanout_test::remote_devices(2),
                         fanout::Options{.collectives = &remote_transport}};
  }();
  for (int i = 1; i <= 3; ++i) {
    const auto results = fanout::to_host(model(fanout::on_all(), 1));
    CHECK(results[0] == 2 + 40 + 100);
    CHECK(results[1] == 2 + 40 + 100);
    CHECK(RemoteTransport::opened == i);
    CHECK(RemoteTransport::closed == i);
    CHECK(RemoteTransport::groups == i);
  }
  RemoteTransport::fails = true;
  const std::string text = message_of<ReplicaError>([&] { model(fanout::on_all(), 1); });
  RemoteTransport::fails = false;
  CHECK(says(text, "2 of 2", "the transport is broken", "the transport is broken"));
  CHECK(RemoteTransport::aborted == 1);
  CHECK(RemoteTransport::closed == 4);
}

TEST_CASE("the failure of a device in a collective is that of its shard, and the released shards are not listed") {
  for (const bool deadline : {false, true}) {
    fanout::Options options{.collectives = &remote_transport};
    if (deadline) options.deadline = std::chrono::minutes(10);
    const ParallelModel model{AddsThree{}, fanout_test::remote_devices(2), options};
    for (const int failed : {0, 1}) {
      CAPTURE(deadline);
      CAPTURE(failed);
      RemoteTransport::failed_rank = failed;
      const int settled = RemoteTransport::settled;
      try {
        model(fanout::on_all(), 1);
        CHECK(false);
      } catch (const ReplicaError& error) {
        CHECK(error.failures().size() == 1);
        CHECK(error.failures()[0].shard == static_cast<std::size_t>(failed));
        CHECK(error.get_if<fanout::OutOfMemory>() != nullptr);
      }
      CHECK(RemoteTransport::settled == settled + 1);
      RemoteTransport::failed_rank = -1;
      CHECK(fanout::to_host(model(fanout::on_all(), 1))[0] == 2 + 40 + 100);
    }
  }
}

TEST_CASE("the failure of a device in a collective is listed beside the exception of another shard") {
  const auto throws = [](Context auto& ctx, int) {
    const auto own = fanout::empty<float>(ctx, 2);
    const std::array<float, 2> here{1, 2};
    fanout::backend::transfer(ctx.device().memory(), own.data(), fanout::host_memory, here.data(), sizeof here);
    ctx.communicator().all_reduce(own);
    if (ctx.rank() == 1) throw fanout::Error("another failure");
  };
  const ParallelModel model{throws, fanout_test::remote_devices(2), fanout::Options{.collectives = &remote_transport}};
  RemoteTransport::failed_rank = 0;
  const std::string said = message_of<ReplicaError>([&] { model(fanout::on_all(), 1); });
  RemoteTransport::failed_rank = -1;
  CHECK(says(said, "2 of 2", "the device is lost", "another failure"));
}

TEST_CASE("a collective in the child of a fork is an error there") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  std::atomic<int> status{-1};
  const auto forks = [&status](Context auto& ctx, int) {
    auto ranks = ctx.communicator();
    ranks.barrier();
    if (ctx.rank() == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        try {
          ranks.barrier();
        } catch (const fanout::Error&) {
          ::_exit(7);
        }
        ::_exit(1);
      }
      int ended = 0;
      ::waitpid(child, &ended, 0);
      status = WEXITSTATUS(ended);
    }
    ranks.barrier();
  };
  const ParallelModel model{forks, host_devices(2)};
  model(fanout::on_all(), 1);
  CHECK(status == 7);
}
