// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models on all visible GPUs, from the arguments to the result.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <cuda_runtime_api.h>

#include <fanout/array/to.hpp>
#include <fanout/context/launch.hpp>
#include <fanout/cuda.hpp>
#include <fanout/cuda/memory_info.hpp>

#include "cuda/gpus.hpp"
#include "cuda/host_launcher.hpp"
#include "cuda/stand_in/stand_in.h"

using fanout::AllVisible;
using fanout::Context;
using fanout::CudaDevice;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::to_host;
using fanout::View;

namespace {

Tensor<float, 2> row_numbers(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> tensor(rows, columns);
  float next = 1;
  for (float& value : tensor) value = next++;
  return tensor;
}

/// y = x . weight + bias, on the device that the context has.
struct Linear {
  Tensor<float, 2> weight;  // [out, in]
  Tensor<float, 1> bias;    // [out]

  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, weight.extent(0));
    const View<const float, 2> w = weight;
    const View<const float, 1> b = bias;
    fanout::launch(ctx, x.extent(0), [x, w, b, to = View<float, 2>(y)](std::size_t i) {
      for (std::size_t o = 0; o < w.extent(0); ++o) {
        to(i, o) = b[o];
        for (std::size_t k = 0; k < w.extent(1); ++k) to(i, o) += w(o, k) * x(i, k);
      }
    });
    return y;
  }
};

Linear linear() {
  Linear model{row_numbers(2, 3), Tensor<float, 1>(2)};
  model.bias[0] = 100;
  model.bias[1] = 200;
  return model;
}

Tensor<float, 2> expected(const Linear& model, const Tensor<float, 2>& x) {
  return ParallelModel{model, fanout::host_devices(1)}(x);
}

void check_equal(const Tensor<float, 2>& found, const Tensor<float, 2>& wanted) {
  REQUIRE(found.extents() == wanted.extents());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found.data()[i] == wanted.data()[i]);
}

// What is launched here runs on the host, which cannot read the memory of a real GPU.
bool no_device() { return !fanout_test::has_stand_in(1); }

}  // namespace

TEST_CASE("a model runs on all GPUs, and its results lie on the first") {
  if (no_device()) return;
  const auto x = row_numbers(30, 3);
  const ParallelModel model{linear(), AllVisible<CudaDevice>{}};
  for (int call = 0; call < 20; ++call) {
    const auto y = model(x);
    CHECK(y.space() == CudaDevice(0).memory().space);
    check_equal(to_host(y), expected(linear(), x));
  }
}

TEST_CASE("a failing kernel is the call's error, and only its GPU is lost from then on") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  stand_in_allow_at_exit("device memory", 1);  // a lost GPU keeps what a shard had
  const auto x = row_numbers(8, 3);
  const auto forward = [](Context auto& ctx, View<const float, 2> rows, bool breaks) {
    fanout::launch(ctx, 1, [breaks, gpu = ctx.device().index()](std::size_t) {
      if (breaks && gpu == 1) stand_in_poison(1, cudaErrorIllegalAddress);
    });
    return static_cast<int>(rows.extent(0));
  };
  const ParallelModel model{forward, AllVisible<CudaDevice>{}};
  model(x, false);
  try {
    model(x, true);
    FAIL("nothing was thrown");
  } catch (const fanout::ReplicaError& error) {
    REQUIRE(error.failures().size() == 1);
    CHECK(error.failures()[0].shard == 1);
    const auto* lost = error.get_if<fanout::cuda::DeviceLost>();
    REQUIRE(lost != nullptr);
    CHECK(lost->index() == 1);
    CHECK(std::string(lost->what()).find("device cuda:1 is lost") != std::string::npos);
  }
  CHECK_THROWS_AS(model(x, false), fanout::cuda::DeviceLost);
  const ParallelModel first{linear(), fanout::devices_at<CudaDevice>({0})};
  check_equal(to_host(first(x)), expected(linear(), x));
}

TEST_CASE("the shard of a GPU that is lost runs again on another one, and so do those of later calls") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  stand_in_allow_at_exit("device memory", 1);  // a lost GPU keeps what a shard had
  const auto x = row_numbers(8, 3);
  bool breaks = false;
  const auto forward = [&breaks](Context auto& ctx, View<const float, 2> rows) {
    fanout::launch(ctx, 1, [&breaks, gpu = ctx.device().index()](std::size_t) {
      if (breaks && gpu == 1) stand_in_poison(1, cudaErrorIllegalAddress);
    });
    return fanout::psum(rows.extent(0));
  };
  const ParallelModel model{forward, AllVisible<CudaDevice>{}, fanout::Options{.retry = fanout::Retry{.times = 1}}};
  CHECK(model(x) == 8);
  breaks = true;
  CHECK(model(x) == 8);
  CHECK(model(x) == 8);
  for (const fanout::Shard& shard : model.plan(8)) CHECK(shard.device != 1);
  CHECK(model(x) == 8);
}

TEST_CASE("the caller's current device is restored, and all memory is released") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  stand_in_fresh_thread();
  const std::size_t before = fanout::cuda::memory_allocated(0);
  {
    const ParallelModel model{linear(), AllVisible<CudaDevice>{}};
    to_host(model(row_numbers(8, 3)));
    CHECK(stand_in_depth() == 0);
  }
  CHECK(fanout::cuda::memory_allocated(0) == before);
}

TEST_CASE("a call from inside a forward sees what the forward's device is still computing") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const ParallelModel inner{linear(), AllVisible<CudaDevice>{}};
  const ParallelModel on_host{linear(), fanout::host_devices(2)};
  const auto outer = [&](Context auto& ctx, View<const float, 2> x) {
    auto doubled = fanout::empty<float>(ctx, x.extent(0), 3);
    fanout::launch(ctx, x.size(), [x, to = doubled](std::size_t i) { to.data()[i] = 2 * x.data()[i]; });
    auto pending = inner.async(doubled);
    return std::tuple{inner(doubled), on_host(doubled), pending.get()};
  };
  auto x = row_numbers(12, 3);
  const ParallelModel model{outer, AllVisible<CudaDevice>{}};
  const auto [gpus, cores, later] = model(x);
  for (float& value : x) value *= 2;
  check_equal(to_host(gpus), expected(linear(), x));
  check_equal(to_host(cores), expected(linear(), x));
  check_equal(to_host(later), expected(linear(), x));
}

namespace {

/// Gives a device work that takes its time and then sets the elements to 2, 4, 6 and so on.
void fill_slowly(const CudaDevice& device, View<float, 2> x) {
  fanout::backend::Launcher<CudaDevice>::launch(device, 1, [x](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = 2 * static_cast<float>(i + 1);
  });
}

Tensor<float, 2> even_numbers(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> tensor(rows, columns);
  float next = 0;
  for (float& value : tensor) value = next += 2;
  return tensor;
}

/// All visible GPUs, with two devices on each.
auto two_on_each_gpu() {
  std::vector<CudaDevice> devices;
  for (int i = 0; i < fanout::cuda::device_count(); ++i) {
    devices.push_back(CudaDevice(i));
    devices.push_back(CudaDevice(i, 1));
  }
  return fanout::DeviceSet(std::move(devices));
}

}  // namespace

TEST_CASE("a call from inside an entered device sees what that device is still computing") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const CudaDevice first(0);
  const ParallelModel gpus{linear(), two_on_each_gpu()};
  const ParallelModel cores{linear(), fanout::host_devices(2)};
  const auto find_sum = [](Context auto& ctx, View<const float, 2> of) {
    auto sum = fanout::empty<float>(ctx, 1);
    fanout::launch(ctx, 1, [of, sum](std::size_t) {
      sum[0] = 0;
      for (std::size_t i = 0; i < of.size(); ++i) sum[0] += of.data()[i];
    });
    return sum;
  };
  const ParallelModel sums{find_sum, two_on_each_gpu()};
  const auto x = even_numbers(12, 3);
  const auto wanted = expected(linear(), x);
  const auto before = row_numbers(12, 3);
  auto there = fanout::to(before, first);
  const auto again = [&] {
    first.synchronize();
    fill_slowly(first, there);
  };
  const auto clear = [&] {
    first.synchronize();
    fanout::copy(before, there);
  };
  const auto inputs = fanout::scatter(gpus.devices(), there);
  {
    const auto entered = first.enter();
    again();
    check_equal(to_host(gpus(there)), wanted);
    clear();
    again();
    check_equal(cores(there), wanted);
    clear();
    again();
    const auto every = to_host(sums(fanout::on_all(), fanout::broadcast(there)));
    for (const float sum : every) CHECK(sum == 1332);
    clear();
    again();
    auto pending = gpus.async(there);
    check_equal(to_host(pending.get()), wanted);
    clear();
    again();
    Tensor<float, 2> result(12, 2);
    gpus.into(result)(there);
    check_equal(result, wanted);
    clear();
    again();
    check_equal(to_host(fanout::to(there, CudaDevice(fanout::cuda::device_count() - 1))), x);
    clear();
    again();
    const auto replicas = fanout::replicate(linear(), gpus.devices());
    check_equal(to_host(gather(apply(replicas, inputs))), wanted);
  }
}

TEST_CASE("results wait for what still writes the caller's memory on the main GPU") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const CudaDevice first(0);
  const ParallelModel gpus{linear(), two_on_each_gpu()};
  const auto x = row_numbers(12, 3);
  auto y = fanout::to(even_numbers(12, 2), first);
  {
    const auto entered = first.enter();
    fill_slowly(first, y);
    gpus.into(y)(x);
  }
  check_equal(to_host(y), expected(linear(), x));
}

namespace {

/// Its last shard throws if there are fewer than 24 rows.
struct Fails {
  Linear model;

  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = model.forward(ctx, x);
    if (ctx.rows().last == 12 && ctx.rank() + 1 == ctx.size()) throw std::runtime_error("on purpose");
    return y;
  }
};

}  // namespace

TEST_CASE("the caller still owns its memory on the main GPU after a call that fails") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const ParallelModel gpus{Fails{linear()}, AllVisible<CudaDevice>{}};
  auto y = fanout::to(even_numbers(24, 2), CudaDevice(0));
  const float* const there = y.data();
  auto half = y.view().rows({0, 12});
  CHECK_THROWS_AS(gpus.into(half)(row_numbers(12, 3)), fanout::ReplicaError);
  gpus.into(y)(row_numbers(24, 3));
  CHECK(y.data() == there);
  check_equal(to_host(y), expected(linear(), row_numbers(24, 3)));
}

TEST_CASE("a model that is made or changed inside an entered device is the same on all devices") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const CudaDevice first(0);
  const auto x = row_numbers(12, 3);
  auto wanted = linear();
  wanted.weight = even_numbers(2, 3);
  const auto outcome = expected(wanted, x);
  const auto entered = first.enter();
  Linear there = fanout::to(linear(), first);
  fill_slowly(first, there.weight);
  SUBCASE("made") {
    const ParallelModel model{there, two_on_each_gpu()};
    check_equal(to_host(model(x)), outcome);
  }
  SUBCASE("moved in") {
    const ParallelModel model{std::move(there), two_on_each_gpu()};
    check_equal(to_host(model(x)), outcome);
  }
  SUBCASE("replicated") {
    const auto devices = two_on_each_gpu();
    const auto replicas = fanout::replicate(std::move(there), devices);
    check_equal(to_host(gather(apply(replicas, fanout::scatter(devices, x)))), outcome);
  }
  SUBCASE("one of several") {
    // Two devices of one GPU read the model where it lies.
    const fanout::DeviceSet devices(std::vector{CudaDevice(0, 1), CudaDevice(0, 2)});
    const auto models = std::tie(there, there);
    check_equal(to_host(gather(apply(models, devices, fanout::scatter(devices, x)))), outcome);
  }
  SUBCASE("changed") {
    ParallelModel model{linear(), two_on_each_gpu()};
    model(x);
    model.update([&](Linear& m) {
      m = fanout::to(linear(), first);
      fill_slowly(first, m.weight);
    });
    check_equal(to_host(model(x)), outcome);
  }
  SUBCASE("changed by what then throws") {
    ParallelModel model{linear(), two_on_each_gpu()};
    model(x);
    CHECK_THROWS_AS(model.update([&](Linear& m) {
      m = fanout::to(linear(), first);
      fill_slowly(first, m.weight);
      throw 1;
    }),
                    int);
    check_equal(to_host(model(x)), outcome);
  }
}

namespace {

/// Counts rows in a field that all replicas have in common. Allocates nothing, since that would order the devices.
struct Counting {
  fanout::Sum<Tensor<float, 1>> rows{Tensor<float, 1>(1)};

  void forward(Context auto& ctx, View<const float, 2> x, bool fails) {
    fanout::launch(ctx, x.extent(0), [count = View<float, 1>(rows.value)](std::size_t) { ++count[0]; });
    if (fails) throw 1;
  }
};

}  // namespace

TEST_CASE("fields combined inside an entered device are complete at the next call") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const auto x = row_numbers(8, 3);
  const ParallelModel model{Counting{}, two_on_each_gpu()};
  const auto entered = CudaDevice(0).enter();
  for (int call = 0; call < 10; ++call) {
    model(x, false);
    CHECK_THROWS_AS(model(x, true), fanout::ReplicaError);  // what it counted is taken back
  }
  CHECK(to_host(model.model().rows.value)[0] == 80);
}

TEST_CASE("a factory called inside an entered device sees what that device is still computing") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const CudaDevice first(0);
  const auto x = row_numbers(12, 3);
  auto wanted = linear();
  wanted.weight = even_numbers(2, 3);
  const auto entered = first.enter();
  Linear there = fanout::to(linear(), first);
  fill_slowly(first, there.weight);
  const ParallelModel model{fanout::factory([&there](const auto& device) { return fanout::to(there, device); }),
                            two_on_each_gpu()};
  check_equal(to_host(model(x)), expected(wanted, x));
}

TEST_CASE("sharded values that an entered device is still computing are complete in the next call") {
  if (no_device()) return;
  const fanout_test::Watched watched;
  const CudaDevice first(0);
  const auto devices = two_on_each_gpu();
  const ParallelModel model{linear(), devices};
  const auto x = even_numbers(12, 3);
  const auto entered = first.enter();
  const auto before = row_numbers(12, 3);
  auto there = fanout::to(before, first);
  fill_slowly(first, there);
  std::vector<fanout::DeviceId> ids;
  std::vector<View<const float, 2>> parts;
  const fanout::Plan plan = model.plan(12);
  for (const fanout::Shard& shard : plan) {
    ids.push_back(devices.ids()[shard.device]);
    parts.push_back(View<const float, 2>(there).rows(shard.rows));
  }
  const fanout::Sharded<View<const float, 2>> sharded(plan, ids, parts);
  check_equal(to_host(model(sharded)), expected(linear(), x));
}
