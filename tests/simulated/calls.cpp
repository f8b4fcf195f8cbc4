// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of models on simulated devices: their results, and their virtual times, computed by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/simulated.hpp>

using fanout::Context;
using fanout::Options;
using fanout::ParallelModel;
using fanout::simulated_devices;
using fanout::SimulatedDevice;
using fanout::Tensor;
using fanout::View;
using fanout::WeightedSplit;
using namespace std::chrono_literals;

namespace {

Tensor<float, 1> first_numbers(std::size_t size) {
  Tensor<float, 1> tensor(size);
  std::iota(tensor.begin(), tensor.end(), 0.0F);
  return tensor;
}

/// y = weight * x + bias, in 8 bytes of parameters.
struct Line {
  Tensor<float, 1> weight = fanout::tensor<float>({2});
  Tensor<float, 1> bias = fanout::tensor<float>({1});

  auto forward(Context auto& ctx, View<const float, 1> x) const {
    CHECK(weight.space() == ctx.device().memory().space);
    CHECK(x.space() == ctx.device().memory().space);
    auto y = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = weight(0) * x[i] + bias(0);
    return y;
  }
};

bool is_line_of(const Tensor<float, 1>& y, const Tensor<float, 1>& x) {
  if (y.size() != x.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (y(i) != 2 * x(i) + 1) return false;
  }
  return true;
}

struct Named {
  std::string name;
  std::string forward(View<const float, 1>) const { return name; }
};

struct Averages {
  fanout::Sum<std::size_t> rows{};
  fanout::Mean<Tensor<double, 1>> mean{Tensor<double, 1>(1)};

  void forward(View<const float, 1> x) {
    rows.value += x.size();
    mean.value(0) = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  }
};

/// Nothing is copied to the device and back, but for 4 bytes a row.
struct Size {
  std::size_t forward(View<const float, 1> x) const { return x.size(); }
};

}  // namespace

TEST_CASE("a call takes as long as its slowest device") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 8e6, .launch = 10us}});
  const Tensor<float, 1> x = first_numbers(90);
  const ParallelModel even{Line{}, devices};
  CHECK(is_line_of(even(x), x));
  CHECK(devices[0].time() == 45'000);
  const ParallelModel weighted{Line{}, devices, Options{.split = WeightedSplit{1, 8}}};
  CHECK(is_line_of(weighted(x), x));
  CHECK(devices[0].time() == 45'000 + 20'000);  // 10 rows in 10 us, and 80 in 10 us and the launch
  const auto entered = devices[1].enter();
  CHECK(devices[1].time() == 65'000);
}

TEST_CASE("a call takes what its copies take, and the parameters are copied once") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6, .launch = 10us, .bandwidth = 1e9, .latency = 2us}});
  const Tensor<float, 1> x = first_numbers(100);
  const ParallelModel model{Line{}, devices, Options{.output = fanout::DeviceId{"host"}}};
  auto y = model(x);
  CHECK(y.space() == fanout::host_memory);
  CHECK(is_line_of(y, x));
  // Two parameters, the rows, the launch, the shard, the results.
  CHECK(devices[0].time() == 2 * 2'004 + 2'400 + 10'000 + 100'000 + 2'400);
  y = model(x);
  CHECK(devices[0].time() == 2 * 2'004 + 2 * (2'400 + 10'000 + 100'000 + 2'400));
}

TEST_CASE("results lie on the main device, and those of the others go over both links") {
  const auto devices = simulated_devices({{.bandwidth = 1e9}, {.bandwidth = 5e8}, {.bandwidth = 1e9}});
  const Tensor<float, 1> x = first_numbers(300);
  const ParallelModel model{Line{}, devices};
  auto y = model(x);
  CHECK(y.space() == devices[0].memory().space);
  CHECK(is_line_of(y, x));
  // The middle device: 8 bytes of parameters in 16 ns, 400 bytes in 800 ns, 100 rows, 400 bytes. Then the last one.
  CHECK(devices[0].time() == 16 + 800 + 100'000 + 800 + 400);
  const std::int64_t before = devices[0].time();
  y = model(x);
  CHECK(devices[0].time() == before + 800 + 100'000 + 800 + 400);
}

TEST_CASE("a device that slows down makes calls longer from then on") {
  const auto devices = simulated_devices({{.rows_per_second = 1000, .slow_down = {.at = 2s, .factor = 4}}, {}});
  const ParallelModel model{Size{}, devices};
  const Tensor<float, 1> x = first_numbers(1000);
  std::vector<std::int64_t> times;
  for (int i = 0; i < 6; ++i) {
    model(x);
    times.push_back(devices[0].time());
  }
  const std::int64_t half = 500'000'000;
  CHECK(times == std::vector{half, 2 * half, 3 * half, 4 * half, 8 * half, 12 * half});
}

TEST_CASE("the same calls take the same times, to the nanosecond") {
  const auto run = [](std::uint64_t seed) {
    const auto devices = simulated_devices(
        {{.rows_per_second = 1.7e6, .launch = 3us, .bandwidth = 1.3e9, .latency = 1us, .noise = 0.1, .seed = seed},
         {.rows_per_second = 5.1e6, .bandwidth = 7e8, .slow_down = {.at = 3ms, .factor = 1.5}, .noise = 0.05},
         {.rows_per_second = 3e6, .noise = 0.2, .seed = 9}});
    const ParallelModel model{Line{}, devices, Options{.split = WeightedSplit{17, 51, 30}}};
    const Tensor<float, 1> x = first_numbers(999);
    std::vector<std::int64_t> times;
    for (int i = 0; i < 50; ++i) {
      model(x);
      times.push_back(devices[0].time());
    }
    return times;
  };
  const auto once = run(1);
  CHECK(once == run(1));
  CHECK(once != run(2));
  // So they are on every machine; found on x86-64.
  CHECK(once.front() == 113'486);
  CHECK(once.back() == 6'915'061);
}

TEST_CASE("all shards run on the calling thread") {
  const auto caller = std::this_thread::get_id();
  const ParallelModel model{[caller](View<const float, 1>) { return std::this_thread::get_id() == caller; },
                            simulated_devices({{}, {}, {}})};
  const auto in_caller = model(first_numbers(3));
  REQUIRE(in_caller.size() == 3);
  for (const bool here : in_caller) CHECK(here);
}

TEST_CASE("host devices compute beside simulated ones, in no virtual time") {
  const auto simulated = simulated_devices({{.rows_per_second = 1e6, .bandwidth = 1e9}});
  const auto devices = fanout::host_devices(2) | simulated;
  const Tensor<float, 1> x = first_numbers(30);
  const auto add_one = [](Context auto& ctx, View<const float, 1> part) {
    auto y = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < part.size(); ++i) y[i] = 2 * part[i] + 1;
    return y;
  };
  const ParallelModel model{add_one, devices};
  CHECK(is_line_of(model(x), x));
  CHECK(simulated[0].time() == 40 + 10'000 + 40);
  const ParallelModel turned{add_one, simulated | fanout::host_devices(2)};
  const auto y = turned(x);
  CHECK(y.space() == simulated[0].memory().space);
  CHECK(is_line_of(y, x));
}

TEST_CASE("a non-const forward changes the replica of its device") {
  struct Counts {
    Tensor<float, 1> seen = fanout::tensor<float>({0});
    float forward(View<const float, 1> x) { return seen(0) += static_cast<float>(x.size()); }
  };
  const auto devices = simulated_devices({{}, {.rows_per_second = 2e6}});
  ParallelModel model{Counts{}, devices};
  const Tensor<float, 1> x = first_numbers(6);
  CHECK(model(x) == fanout::tensor<float>({3, 3}));
  CHECK(model(x) == fanout::tensor<float>({6, 6}));
  CHECK(devices[0].time() == 6'000);
  model.update([](Counts& counts) { counts.seen(0) = 100; });
  CHECK(model(x) == fanout::tensor<float>({103, 103}));
}

TEST_CASE("inout writes rows of an array that lies on the device") {
  const auto devices = simulated_devices({{}});
  const ParallelModel model{[](View<float, 1> x) {
                              for (float& value : x) value += 1;
                            },
                            devices};
  auto there = fanout::to(first_numbers(4), devices[0]);
  model(fanout::inout(there));
  CHECK(there == fanout::tensor<float>({1, 2, 3, 4}));
}

TEST_CASE("outputs are written right into the caller's memory on the main device, and take no other memory there") {
  const auto devices = simulated_devices({{.memory = 4'000}, {.memory = 4'000}});
  Tensor<float, 1> y({400}, devices[0].memory());
  const float* const there = y.data();
  const ParallelModel model{[&](Context auto& ctx, View<const float, 1> part) {
                              auto out = fanout::output<float>(ctx);
                              CHECK((out.data() == there) == (ctx.rank() == 0));
                              for (std::size_t i = 0; i < part.size(); ++i) out[i] = 2 * part[i] + 1;
                              return out;
                            },
                            devices};
  const Tensor<float, 1> x = first_numbers(400);
  model.into(y)(x);  // 800 bytes of x on each device; the result is not there twice
  CHECK(y.data() == there);
  CHECK(is_line_of(y, x));
  CHECK(y.space() == devices[0].memory().space);
  const Tensor<float, 1> copy = y;
  CHECK(copy.data() != there);
  CHECK(is_line_of(copy, x));
}

TEST_CASE("into gathers where the destination is, without a way round over the main device") {
  const auto devices = simulated_devices({{.bandwidth = 1e9}, {.bandwidth = 1e9}});
  const ParallelModel model{[](Context auto& ctx, View<const float, 1>) {
                              auto y = fanout::output<float>(ctx);
                              for (std::size_t i = 0; i < y.size(); ++i) y[i] = 1;
                              return y;
                            },
                            devices};
  const Tensor<float, 1> x = fanout::to(first_numbers(200), devices[1]);
  const auto time_of = [&](auto& y) {
    const std::int64_t before = devices[0].time();
    model.into(y)(x);
    const auto found = fanout::to_host(y);
    CHECK(std::count(found.begin(), found.end(), 1.0F) == 200);
    return devices[0].time() - before - (y.space() == fanout::host_memory ? 0 : 800);
  };
  Tensor<float, 1> other({200}, devices[1].memory());
  CHECK(time_of(other) == 400 + 100'000 + 400);  // half of x, 100 rows, and half of y
  Tensor<float, 1> host(200);
  CHECK(time_of(host) == 400 + 100'000 + 400);  // each device sends half of y to the host, at the same time
}

TEST_CASE("into with arrays in two memories writes outputs into those on the main device, and copies the others") {
  const auto devices = simulated_devices({{}, {}});
  const Tensor<float, 1> x = first_numbers(20);
  Tensor<float, 1> here({20}, devices[0].memory());
  Tensor<float, 1> y({20}, devices[1].memory());
  const float* const first = here.data();
  const float* const other = y.data();
  const ParallelModel model{[&](Context auto& ctx, View<const float, 1> part) {
                              auto one = fanout::output<float>(ctx);
                              auto two = fanout::output<float>(ctx);
                              CHECK((one.data() == first) == (ctx.rank() == 0));
                              CHECK(two.data() != other);
                              for (std::size_t i = 0; i < part.size(); ++i) {
                                one[i] = part[i];
                                two[i] = 2 * part[i] + 1;
                              }
                              return std::tuple(one, two);
                            },
                            devices};
  model.into(std::tie(here, y))(x);
  CHECK(here == x);
  CHECK(is_line_of(y, x));
}

TEST_CASE("asynchronous calls are made by the thread that takes their results") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 1e6}});
  const ParallelModel model{Line{}, devices};
  const Tensor<float, 1> x = first_numbers(20);
  auto one = model.async(x);
  auto two = model.async(x);
  CHECK(devices[0].time() == 0);
  CHECK(is_line_of(one.get(), x));
  CHECK(devices[0].time() == 10'000);
  CHECK(is_line_of(two.get(), x));
  CHECK(devices[0].time() == 20'000);
}

TEST_CASE("collectives between simulated devices") {
  const auto devices = simulated_devices({{.bandwidth = 1e9}, {.bandwidth = 1e9}, {.bandwidth = 1e9}});
  const auto sums = [](Context auto& ctx, View<const float, 1> x) {
    auto y = fanout::output<float>(ctx);
    auto sum = fanout::empty<float>(ctx, std::size_t{1});
    sum[0] = static_cast<float>(x.size());
    ctx.communicator().all_reduce(sum);
    for (float& value : y) value = sum[0];
    return y;
  };
  const ParallelModel model{sums, devices};
  CHECK(model(first_numbers(30)) == Tensor<float, 1>::full({30}, 30));
  // On each device: 40 bytes in, 4 to the host and 4 back, 10 rows. Then 2 * 40 bytes of the others to the first.
  CHECK(devices[0].time() == 40 + 8 + 10'000 + 80);
  CHECK(model(first_numbers(3)) == Tensor<float, 1>::full({3}, 3));
  CHECK(devices[0].time() == 10'128 + 4 + 8 + 1'000 + 8);
}

TEST_CASE("several threads call models on the same devices") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6, .memory = 1 << 20}, {.rows_per_second = 3e6}});
  const ParallelModel model{Line{}, devices};
  const Tensor<float, 1> x = first_numbers(20);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) right += is_line_of(model(x), x) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 200);
  CHECK(devices[0].time() >= 200 * 10'000);  // no work is lost
  CHECK(devices[0].free_memory() == (1 << 20) - 8);
}

TEST_CASE("models of a factory, replicas of their own and the four stages") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 1e6}});
  const Tensor<float, 1> x = first_numbers(20);
  const ParallelModel made{fanout::factory([](const auto& device) { return Named{to_string(device.id())}; }), devices};
  CHECK(made(x) == std::vector{to_string(devices[0].id()), to_string(devices[1].id())});
  CHECK(devices[0].time() == 10'000);
  const ParallelModel own{fanout::per_replica(Size{}), devices};
  CHECK(own(x) == fanout::tensor<std::size_t>({10, 10}));
  CHECK(devices[0].time() == 20'000);
  auto outputs = fanout::apply(fanout::replicate(Line{}, devices), fanout::scatter(devices, x));
  CHECK(devices[0].time() == 30'000);
  CHECK(is_line_of(fanout::gather(std::move(outputs)), x));
}

TEST_CASE("a model calls another one: the inner call begins at the time of the outer shard") {
  const auto outer = simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 1e6}});
  const ParallelModel inner{Size{}, outer};
  const ParallelModel model{[&inner](View<const float, 1> x) { return inner(x)[0]; },
                            fanout::DeviceSet<SimulatedDevice>(std::vector{outer[0]})};
  model(first_numbers(10));
  // The inner shards of 5 rows take 5 us each, at the same time. Then the outer one of 10 rows ends.
  CHECK(outer[0].time() == 15'000);
}

TEST_CASE("launch makes its calls on the calling thread") {
  struct Twice {
    View<float, 1> y;
    View<const float, 1> x;
    void operator()(std::size_t i) const { y[i] = 2 * x[i]; }
  };
  const ParallelModel model{[](Context auto& ctx, View<const float, 1> x) {
                              auto y = fanout::output<float>(ctx);
                              fanout::launch(ctx, x.size(), Twice{y, x});
                              return y;
                            },
                            simulated_devices({{}, {}})};
  CHECK(model(fanout::tensor<float>({1, 2, 3})) == fanout::tensor<float>({2, 4, 6}));
}

TEST_CASE("a model takes a deadline, which is one of real time") {
  const auto devices = simulated_devices({{.rows_per_second = 2}, {.rows_per_second = 1}});
  const ParallelModel model{Size{}, devices, Options{.deadline = 1h}};
  CHECK(model(first_numbers(20'000)).size() == 2);
  CHECK(devices[0].time() == 10'000'000'000'000);
}

namespace {

/// Counts in a `forward` that is not const, and tells the count in one that is.
struct CountsAndTells {
  fanout::Tensor<float, 1> count = fanout::Tensor<float, 1>(1);
  fanout::Sum<double> rows;

  std::vector<float> forward(fanout::View<const float, 1> x) {
    count[0] += 1;
    rows.value += static_cast<double>(x.size());
    return std::vector<float>(x.size(), count[0]);
  }
  std::vector<float> forward(fanout::View<const int, 1> x) const {
    return std::vector<float>(x.size(), count[0] + 100 * static_cast<float>(rows.value));
  }
};

/// Its `forward` that is not const calls the one that is.
struct CallsItself {
  static inline const fanout::ParallelModel<CallsItself, fanout::DeviceSet<fanout::SimulatedDevice>>* own = nullptr;
  fanout::Tensor<float, 1> number = fanout::Tensor<float, 1>(1);

  std::vector<float> forward(fanout::View<const float, 1> x) {
    number[0] = 5;
    return (*own)(fanout::Tensor<int, 1>(x.size()));
  }
  std::vector<float> forward(fanout::View<const int, 1> x) const { return std::vector<float>(x.size(), number[0]); }
};

}  // namespace

TEST_CASE("a const forward runs on the original's values beside one that changes its replica, as on the host") {
  const fanout::Tensor<float, 1> floats(4);
  const fanout::Tensor<int, 1> ints(4);
  const auto check = [&](auto& model) {
    CHECK(model(ints) == std::vector<float>(4, 0));
    CHECK(model(floats) == std::vector<float>(4, 1));
    CHECK(model(floats) == std::vector<float>(4, 2));
    CHECK(model(ints) == std::vector<float>(4, 800));  // the combined rows, and not the replica's own count
    model.update([](CountsAndTells& original) { original.count[0] = 7; });
    CHECK(model(ints) == std::vector<float>(4, 807));
    CHECK(model(floats) == std::vector<float>(4, 8));
    CHECK(model(ints) == std::vector<float>(4, 1207));
  };
  const fanout::Options on_host{.output = fanout::DeviceId{.kind = "host", .index = 0}};
  fanout::ParallelModel on_cores{CountsAndTells{}, fanout::host_devices(2)};
  check(on_cores);
  fanout::ParallelModel simulated{CountsAndTells{},
                                  fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(2)), on_host};
  check(simulated);
}

TEST_CASE("a forward that is not const may call the const one of its own model, which waits for nothing") {
  const fanout::Options on_host{.output = fanout::DeviceId{.kind = "host", .index = 0}};
  fanout::ParallelModel model{CallsItself{}, fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(2)),
                              on_host};
  CallsItself::own = &model;
  CHECK(model(fanout::Tensor<float, 1>(4)) == std::vector<float>(4, 0));
}
