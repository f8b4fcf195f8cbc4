// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What happens at the same time in a model's calls, and what is not done at all: shown by kernels that do not end
// before the other thing has been seen. What is not there after a time limit is reported as missing.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <fanout/cuda.hpp>

#include "cuda/gpus.hpp"
#include "cuda/host_launcher.hpp"
#include "cuda/stand_in/stand_in.h"

namespace cuda = fanout::cuda;
using fanout::Context;
using fanout::CudaDevice;
using fanout::DeviceSet;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

/// Waits until `seen()`; false if that takes longer than anything should.
template <class Seen>
bool in_time(const Seen& seen) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!seen()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

Tensor<double, 1> ascending(std::size_t size, double first) {
  Tensor<double, 1> tensor(size);
  for (double& value : tensor) value = first++;
  return tensor;
}

/// One device on each GPU, and two.
std::vector<DeviceSet<CudaDevice>> sets() {
  const int gpus = cuda::device_count();
  return {fanout::cuda_devices(), fanout::cuda_devices({.count = 2 * gpus, .oversubscribe = true})};
}

bool copies_are_done(const DeviceSet<CudaDevice>& devices) {
  bool done = true;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const fanout::DeviceId id = devices[i].id();
    done = done && cuda::detail::streams_of(cuda::detail::gpu_at(id.index), id.instance).copies().is_idle();
  }
  return done;
}

struct Copy {
  View<const double, 1> from;
  View<double, 1> to;
  void operator()(std::size_t i) const { to[i] = from[i]; }
};

struct Hold {
  const fanout_test::Barrier* barrier;
  void operator()(std::size_t) const { (*barrier)(); }
};

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched,
                  "the next batch is copied to the GPUs while the kernels of the one before run") {
  if (!fanout_test::has_stand_in(1)) return;
  for (const DeviceSet<CudaDevice>& devices : sets()) {
    fanout_test::Barrier barrier;
    fanout::detail::Atomic<std::uint32_t> begun{0};
    const auto forward = [&](Context auto& ctx, View<const double, 1> x, bool hold) {
      if (hold) fanout::launch(ctx, 1, Hold{&barrier});
      auto y = fanout::output<double>(ctx);
      fanout::launch(ctx, x.size(), Copy{x, y});
      begun.fetch_add(1);
      return y;
    };
    const ParallelModel model{forward, devices, Options{.output = fanout::DeviceId{"host"}}};
    const auto first = ascending(1001, 1), second = ascending(1001, 5000);
    const auto count = static_cast<std::uint32_t>(devices.size());
    auto one = model.async(first, true);
    auto two = model.async(second, false);
    // All of the second batch has been given to the devices, and has arrived, and no kernel of the first has ended.
    const bool given = in_time([&] { return begun.load() == 2 * count; });
    const bool copied = given && in_time([&] { return copies_are_done(devices); });
    const bool still_running = !devices[0].stream().is_idle();
    barrier.open();
    const auto y = one.get();
    const auto z = two.get();
    CHECK(given);
    CHECK(copied);
    CHECK(still_running);
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(y[i] == first[i]);
      CHECK(z[i] == second[i]);
    }
  }
}

namespace {

/// A kernel that ends when as many run.
struct Together {
  fanout::detail::Atomic<std::uint32_t>* running;
  fanout::detail::Atomic<std::uint32_t>* alone;
  std::uint32_t wanted;
  void operator()(std::size_t) const {
    running->fetch_add(1);
    if (!in_time([this] { return running->load() >= wanted; })) alone->fetch_add(1);
  }
};

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched,
                  "kernels of one call run at the same time, on all GPUs and all devices of a GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  for (const DeviceSet<CudaDevice>& devices : sets()) {
    fanout::detail::Atomic<std::uint32_t> running{0};
    fanout::detail::Atomic<std::uint32_t> alone{0};
    const auto wanted = static_cast<std::uint32_t>(devices.size());
    const auto forward = [&](Context auto& ctx, View<const double, 1> x) {
      fanout::launch(ctx, 1, Together{&running, &alone, wanted});
      return static_cast<int>(x.size());
    };
    const ParallelModel model{forward, devices};
    model(ascending(100, 0));
    CHECK(running.load() == wanted);
    CHECK(alone.load() == 0);
  }
}

namespace {

long copies_to_or_between_gpus() {
  long copies = 0;
  for (const char* kind : {"h2d pinned", "h2d pageable", "d2d", "peer direct", "peer staged"}) {
    copies += stand_in_copies(kind);
  }
  return copies;
}

struct Scaled {
  Tensor<double, 1> factor;

  auto forward(Context auto& ctx, View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), [x, to = View<double, 1>(y), by = View<const double, 1>(factor)](std::size_t i) {
      to[i] = by[0] * x[i];
    });
    return y;
  }
};

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched, "what lies on its GPU already is not copied, and parameters once") {
  if (!fanout_test::has_stand_in(1)) return;
  const CudaDevice device(0);
  const auto x = fanout::to(ascending(1000, 1), device);
  const ParallelModel model{Scaled{ascending(1, 3)}, fanout::cuda_devices({0})};
  model(x);
  stand_in_forget_counts();
  const auto y = model(x.view());
  const auto z = model(y);
  CHECK(copies_to_or_between_gpus() == 0);
  CHECK(y.space() == device.memory().space);
  CHECK(fanout::to_host(z)[999] == 9000);
}

TEST_CASE_FIXTURE(fanout_test::Watched, "what a call left on many GPUs is the next one's in place") {
  if (!fanout_test::has_stand_in(1)) return;
  const auto stays = [](Context auto& ctx, View<const double, 1> x) {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Copy{x, y});
    return fanout::sharded(y);
  };
  for (const DeviceSet<CudaDevice>& devices : sets()) {
    const ParallelModel first{stays, devices};
    const ParallelModel second{Scaled{ascending(1, 2)}, devices, Options{.output = fanout::DeviceId{"host"}}};
    const auto pieces = first(ascending(64, 1));
    second(pieces);
    stand_in_forget_counts();
    const auto y = second(pieces);
    CHECK(copies_to_or_between_gpus() == 0);
    for (std::size_t i = 0; i < 64; ++i) CHECK(y[i] == 2 * static_cast<double>(i + 1));
  }
}
