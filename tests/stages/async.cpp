// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>
#include <support/simulated.hpp>

namespace {

using fanout::DeviceSet;
using fanout::host_devices;
using fanout::Pending;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::SimulatedDevice;
using fanout::stage;
using fanout::Tensor;
using fanout::View;
using fanout_test::simulated;

using Column = View<const double, 1>;

/// y = scale * x + noise
struct Noisy {
  double scale;

  auto forward(fanout::Context auto& ctx, Column x) const {
    auto y = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y(i) = scale * x(i) + ctx.random(i).uniform();
    return y;
  }
};

Tensor<double, 1> numbers(std::size_t rows, double from = 0) {
  Tensor<double, 1> made(rows);
  for (std::size_t i = 0; i < rows; ++i) made(i) = from + static_cast<double>(i);
  return made;
}

std::vector<double> elements(const Tensor<double, 1>& x) { return {x.begin(), x.end()}; }

template <class A, class B>
auto noisy(const A& first, const B& second) {
  const fanout::Options seeded{.seed = 5};
  return Pipeline{PipelineOptions{.micro_batches = 4}, stage(Noisy{2}, first, seeded), stage(Noisy{3}, second, seeded)};
}

/// Checks that asynchronous calls return what the same synchronous calls return.
template <class A, class B>
void check_same(const A& first, const B& second) {
  std::vector<std::vector<double>> wanted;
  {
    const auto net = noisy(first, second);
    for (int i = 0; i < 5; ++i) wanted.push_back(elements(net(numbers(11, i))));
  }
  std::optional net(noisy(first, second));
  std::vector<Pending<Tensor<double, 1>>> pending;
  for (int i = 0; i < 5; ++i) pending.push_back(net->async(numbers(11, i)));
  CHECK(elements(pending[3].get()) == wanted[3]);
  CHECK(elements(pending[0].get()) == wanted[0]);
  net.reset();
  for (const std::size_t i : std::vector<std::size_t>{4, 1, 2}) {
    CHECK(pending[i].ready());
    CHECK(elements(pending[i].get()) == wanted[i]);
  }
}

}  // namespace

TEST_CASE("asynchronous calls of a pipeline return what synchronous ones return, also after the pipeline has gone") {
  check_same(host_devices(1), host_devices(2));
  check_same(host_devices(2), host_devices(2));
  const auto devices = simulated(2, {.rows_per_second = 1});
  check_same(DeviceSet<SimulatedDevice>({devices[0]}), DeviceSet<SimulatedDevice>({devices[1]}));
  check_same(simulated(2, {.rows_per_second = 1}), host_devices(1));
}

TEST_CASE("batches flow through the stages behind each other") {
  const auto devices = simulated(2, {.rows_per_second = 1});
  const Pipeline net{PipelineOptions{.micro_batches = 4},
                     stage([](Column x) { return Tensor<double, 1>(x); }, DeviceSet<SimulatedDevice>({devices[0]})),
                     stage([](Column x) { return Tensor<double, 1>(x); }, DeviceSet<SimulatedDevice>({devices[1]}))};
  auto first = net.async(numbers(4));
  auto second = net.async(numbers(4));
  first.get();
  second.get();
  CHECK(devices[0].time() == std::int64_t{4 + 4 + 1} * 1'000'000'000);  // one after the other: 5 + 5
}

TEST_CASE("update() runs and waits for pending calls, on any thread") {
  const auto check = [](auto first, auto second) {
    Pipeline net{PipelineOptions{.micro_batches = 3}, stage(Noisy{2}, first), stage(Noisy{3}, second)};
    auto pending = net.async(numbers(7));
    net.template stage<1>().update([&](Noisy& model) {
      CHECK(pending.ready());
      model.scale = 4;
    });
    net.template stage<0>().update([](Noisy& model) { model.scale = 1; });
    const Tensor<double, 1> before = pending.get();
    const Tensor<double, 1> after = net.async(numbers(7)).get();
    for (std::size_t i = 0; i < 7; ++i) {
      const auto x = static_cast<double>(i);
      CHECK(before(i) >= 6 * x);
      CHECK(before(i) < 6 * x + 4);
      CHECK(after(i) >= 4 * x);
      CHECK(after(i) < 4 * x + 5);
    }
  };
  check(host_devices(1), host_devices(2));
  check(simulated(1, {.rows_per_second = 1}), simulated(1, {.rows_per_second = 1}));

  // On the thread of a device that the call needs.
  const auto devices = host_devices(2);
  const auto on = [&](std::size_t i) { return DeviceSet<fanout::HostDevice>({devices[i]}); };
  Pipeline net{PipelineOptions{.micro_batches = 3}, stage(Noisy{2}, on(0)), stage(Noisy{3}, on(1))};
  const fanout::ParallelModel outer{[&net](Column x) {
                                      auto pending = net.async(Tensor<double, 1>(x));
                                      net.stage<1>().update([](Noisy& model) { model.scale += 1; });
                                      pending.get();
                                      return Tensor<double, 1>(x);
                                    },
                                    on(1)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&outer] {
      for (int i = 0; i < 20; ++i) outer(numbers(5));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(net.stage<1>().model().scale == 63);
}

TEST_CASE("update() waits for a pending call that runs, also after another one was taken") {
  std::atomic<bool> runs{false};
  std::atomic<bool> is_updated{false};
  std::atomic<bool> came_early{false};
  const auto forward = [&](Column x) {
    if (x(0) == 1) {
      runs = true;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while (!is_updated && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      if (is_updated) came_early = true;
    }
    return Tensor<double, 1>(x);
  };
  const auto devices = host_devices(2);
  Pipeline net{PipelineOptions{.micro_batches = 1}, stage(forward, host_devices(1)),
               stage(forward, DeviceSet<fanout::HostDevice>({devices[1]}))};
  Tensor<double, 1> slow(1);
  slow(0) = 1;
  auto first = net.async(numbers(1));
  auto second = net.async(slow);
  first.get();
  std::thread caller([&second] { second.get(); });
  while (!runs) std::this_thread::yield();
  net.stage<0>().update([&](const auto&) { is_updated = true; });
  caller.join();
  CHECK_FALSE(came_early);
}

TEST_CASE("a pipeline may end on the thread of a device that its pending call needs") {
  const auto devices = host_devices(2);
  const DeviceSet<fanout::HostDevice> second({devices[1]});
  const fanout::ParallelModel outer{[&](Column x) {
                                      std::optional net(noisy(host_devices(1), second));
                                      auto kept = net->async(Tensor<double, 1>(x));
                                      auto dropped = net->async(Tensor<double, 1>(x));
                                      net.reset();
                                      return kept.get();
                                    },
                                    second};
  const std::vector<double> wanted = elements(noisy(host_devices(1), second)(numbers(6)));
  for (int i = 0; i < 20; ++i) CHECK(elements(outer(numbers(6))) == wanted);
}

TEST_CASE("get() throws what the call throws, and the pipeline works afterwards") {
  struct Fails {
    auto forward(Column x) const {
      if (x(0) > 100) throw std::runtime_error("too large");
      return Tensor<double, 1>(x);
    }
  };
  const auto check = [](auto first, auto second) {
    const Pipeline net{PipelineOptions{.micro_batches = 2}, stage(Fails{}, first), stage(Fails{}, second)};
    auto bad = net.async(numbers(6, 99));
    auto misfit = net.async(numbers(6));
    CHECK_THROWS_AS(bad.get(), fanout::StageError);
    CHECK(elements(misfit.get()) == elements(numbers(6)));
    static_cast<void>(net.async(numbers(6, 99)));  // dropped
    CHECK(elements(net(numbers(6))) == elements(numbers(6)));
  };
  check(host_devices(1), host_devices(2));
  check(simulated(1, {.rows_per_second = 1}), simulated(1, {.rows_per_second = 1}));

  const Pipeline two{stage([](Column x, Column) { return Tensor<double, 1>(x); }, host_devices(1)),
                     stage([](Column x) { return Tensor<double, 1>(x); }, host_devices(1))};
  auto uneven = two.async(numbers(6), numbers(7));
  CHECK(uneven.ready());
  CHECK_THROWS_AS(uneven.get(), fanout::ShapeMismatch);
  CHECK_FALSE(uneven.valid());
  CHECK(elements(two.async(numbers(6), numbers(6)).get()) == elements(numbers(6)));
}

TEST_CASE("a call that cannot begin leaves the stages that it has entered") {
  Pipeline net{stage(Noisy{2}, host_devices(1)), stage(Noisy{3}, host_devices(1))};
  std::optional<Pending<Tensor<double, 1>>> pending;
  net.stage<1>().update([&](Noisy&) { pending.emplace(net.async(numbers(4))); });
  net.stage<0>().update([](Noisy& model) { model.scale = 1; });  // while the call is not taken yet
  CHECK_THROWS_WITH_AS(pending->get(), doctest::Contains("from inside its own update"), fanout::Error);
  CHECK(net(numbers(4)).size() == 4);
}

TEST_CASE("stages that change see the batches in order") {
  struct Sums {
    double sum = 0;
    auto forward(Column x) {
      Tensor<double, 1> y(x.extents());
      for (std::size_t i = 0; i < x.size(); ++i) y(i) = sum += x(i);
      return y;
    }
  };
  const Pipeline net{PipelineOptions{.micro_batches = 3},
                     stage([](Column x) { return Tensor<double, 1>(x); }, host_devices(1)),
                     stage(Sums{}, host_devices(1))};
  std::vector<Pending<Tensor<double, 1>>> pending;
  for (int i = 0; i < 3; ++i) pending.push_back(net.async(numbers(4)));  // 0 + 1 + 2 + 3
  CHECK(elements(pending[2].get()) == std::vector<double>{12, 13, 15, 18});
  CHECK(elements(pending[0].get()) == std::vector<double>{0, 1, 3, 6});
  CHECK(elements(pending[1].get()) == std::vector<double>{6, 7, 9, 12});
}

TEST_CASE("arguments are borrowed or taken over, one stage is a ParallelModel, and a call may return nothing") {
  std::atomic<int> rows{0};
  const auto count = [&rows](Column x) { rows += static_cast<int>(x.size()); };
  const auto pass = [](Column x, const std::shared_ptr<double>& factor) {
    Tensor<double, 1> y(x);
    for (double& value : y) value *= *factor;
    return y;
  };
  const Tensor<double, 1> x = numbers(9);
  const Pipeline net{stage(pass, host_devices(1)), stage(count, host_devices(2))};
  Pending<void> pending = net.async(x, std::make_shared<double>(2));
  pending.wait();
  CHECK(rows == 9);
  pending.get();
  const Pipeline one{stage(pass, host_devices(2))};
  CHECK(one.async(x, std::make_shared<double>(2)).get()(8) == 16);
}

TEST_CASE("threads call one pipeline in both ways, and a forward waits for a pending call") {
  const Pipeline inner{PipelineOptions{.micro_batches = 2},
                       stage([](Column x) { return Tensor<double, 1>(x); }, host_devices(2)),
                       stage([](Column x) { return Tensor<double, 1>(x); }, host_devices(1))};
  const Pipeline net{PipelineOptions{.micro_batches = 3},
                     stage([&inner](Column x) { return inner.async(x).get(); }, host_devices(2)),
                     stage([&inner](Column x) { return inner(x); }, host_devices(2))};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const Tensor<double, 1> x = numbers(8, 10 * t + i);
        auto first = net.async(x);
        auto second = net.async(numbers(3, i));
        if (elements(net(x)) != elements(x)) ++wrong;
        if (elements(second.get()) != elements(numbers(3, i))) ++wrong;
        if (elements(first.get()) != elements(x)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
