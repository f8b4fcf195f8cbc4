// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models with kernels on real GPUs, from the arguments to the result. Skipped without a GPU. The same on the stand-in:
// parallel_model.cpp and overlap.cpp.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/cuda.hpp>
#include <fanout/cuda/launch.cuh>

#include "support/skip.hpp"

namespace {

namespace cuda = fanout::cuda;
using fanout::Context;
using fanout::CudaDevice;
using fanout::DeviceSet;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::to_host;
using fanout::View;
using namespace fanout::literals;

bool no_device() {
  if (cuda::device_count() > 0) return false;
  fanout_test::skip("no CUDA device");
  return true;
}

/// One device on each GPU, and three.
std::vector<DeviceSet<CudaDevice>> sets() {
  return {fanout::cuda_devices(), fanout::cuda_devices({.count = 3 * cuda::device_count(), .oversubscribe = true})};
}

Options on_host() { return {.output = fanout::DeviceId{"host"}}; }

/// Whole numbers, so that sums of products are exact in any order.
Tensor<float, 2> numbers(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> tensor(rows, columns);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<float>(i % 1000);
  return tensor;
}

struct LinearRow {
  View<const float, 2> x, weight;
  View<const float, 1> bias;
  fanout::Output<float, 2> y;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    for (std::size_t o = 0; o < weight.extent(0); ++o) {
      float sum = bias[o];
      for (std::size_t k = 0; k < weight.extent(1); ++k) sum += weight(o, k) * x(i, k);
      y.row(i)[o] = sum;
    }
  }
};

struct Linear {
  Tensor<float, 2> weight;  // [out, in]
  Tensor<float, 1> bias;    // [out]

  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, weight.extent(0));
    fanout::launch(ctx, x.extent(0), LinearRow{x, weight, bias, y});
    return y;
  }
};

Linear linear() {
  Linear model{numbers(2, 3), Tensor<float, 1>(2)};
  model.bias[0] = 100;
  model.bias[1] = 200;
  return model;
}

Tensor<float, 2> on_a_core(const Linear& model, const Tensor<float, 2>& x) {
  return ParallelModel{model, fanout::host_devices(1)}(x);
}

std::size_t differences(const Tensor<float, 2>& found, const Tensor<float, 2>& wanted) {
  const auto here = to_host(found);
  REQUIRE(here.extents() == wanted.extents());
  std::size_t count = 0;
  for (std::size_t i = 0; i < here.size(); ++i) count += here.data()[i] == wanted.data()[i] ? 0U : 1U;
  return count;
}

}  // namespace

TEST_CASE("on GPUs a model gives a core's results, on the first GPU or where requested") {
  if (no_device()) return;
  const auto x = numbers(30, 3);
  const auto wanted = on_a_core(linear(), x);
  for (const auto& devices : sets()) {
    const ParallelModel model{linear(), devices};
    const ParallelModel to_the_host{linear(), devices, on_host()};
    Tensor<float, 2> place(30, 2);
    Tensor<float, 2> pinned = cuda::pinned<float>(30, 2);
    for (int call = 0; call < 20; ++call) {
      const auto y = model(x);
      CHECK(y.space() == CudaDevice(0).memory().space);
      CHECK(differences(y, wanted) == 0);
      CHECK(differences(model(fanout::to(x, CudaDevice(0))), wanted) == 0);
      CHECK(differences(to_the_host(cuda::pin(x)), wanted) == 0);
      model.into(place)(x);
      CHECK(differences(place, wanted) == 0);
      model.into(pinned)(x);
      CHECK(differences(pinned, wanted) == 0);
    }
  }
}

TEST_CASE("on GPUs batches that are in flight at the same time do not mix") {
  if (no_device()) return;
  for (const auto& devices : sets()) {
    const ParallelModel model{linear(), devices, on_host()};
    std::vector<Tensor<float, 2>> batches;
    for (std::size_t n = 0; n < 12; ++n) batches.push_back(numbers(1000 + 100'000 * (n % 3), 3));
    std::vector<fanout::Pending<Tensor<float, 2>>> pending;
    for (const auto& batch : batches) pending.push_back(model.async(batch));
    for (std::size_t n = 0; n < batches.size(); ++n) {
      CHECK(differences(pending[n].get(), on_a_core(linear(), batches[n])) == 0);
    }
  }
}

TEST_CASE("on GPUs an update is there at the next call") {
  if (no_device()) return;
  const auto x = numbers(9, 3);
  for (const auto& devices : sets()) {
    ParallelModel model{linear(), devices};
    auto changed = linear();
    model(x);
    for (int n = 0; n < 5; ++n) {
      const auto change = [](Linear& m) {
        for (float& w : m.weight) w += 1;
      };
      model.update(change);
      change(changed);
      CHECK(differences(model(x), on_a_core(changed, x)) == 0);
    }
  }
}

TEST_CASE("GPUs and cores share a batch") {
  if (no_device()) return;
  const auto x = numbers(400, 3);
  for (const auto& gpus : sets()) {
    const auto devices = gpus | fanout::host_devices(2);
    const ParallelModel model{linear(), devices};
    CHECK(differences(model(x), on_a_core(linear(), x)) == 0);
  }
}

namespace {

struct SumColumn {
  View<const float, 2> x;
  View<double, 1> sums;
  FANOUT_HOST_DEVICE void operator()(std::size_t k) const {
    double sum = 0;
    for (std::size_t i = 0; i < x.extent(0); ++i) sum += x(i, k);
    sums[k] = sum;
  }
};

struct TwiceOf {
  const int* from;
  fanout::Output<int, 1> to;
  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { to[i] = 2 * from[i]; }
};

struct Nested {
  auto forward(Context auto& ctx, View<const float, 2> x, std::span<const int> labels) const {
    auto sums = fanout::empty<double>(ctx, 3);
    auto doubled = fanout::output<int>(ctx);
    fanout::launch(ctx, 3, SumColumn{x, sums});
    fanout::launch(ctx, labels.size(), TwiceOf{labels.data(), doubled});
    return std::tuple{fanout::psum(sums), fanout::dict("labels"_k = doubled, "rows"_k = fanout::psum(x.extent(0)))};
  }
};

}  // namespace

TEST_CASE("on GPUs results are nested, gathered and reduced") {
  if (no_device()) return;
  const auto x = numbers(11, 3);
  std::vector<int> labels(11);
  for (std::size_t i = 0; i < 11; ++i) labels[i] = static_cast<int>(i);
  for (const auto& devices : sets()) {
    const ParallelModel model{Nested{}, devices};
    const auto [sums, rest] = to_host(model(x, labels));
    CHECK(sums[0] == 165);
    CHECK(sums[1] == 176);
    CHECK(sums[2] == 187);
    REQUIRE(rest["labels"_k].size() == 11);
    for (std::size_t i = 0; i < 11; ++i) CHECK(rest["labels"_k][i] == 2 * static_cast<int>(i));
    CHECK(rest["rows"_k] == 11);
  }
}

namespace {

struct AddOne {
  View<float, 2> to;
  View<const float, 2> from;
  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { to.data()[i] = from.data()[i] + 1; }
};

struct Next {
  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    fanout::launch(ctx, x.size(), AddOne{y, x});
    return y;
  }
};

struct NextInPlace {
  int forward(Context auto& ctx, View<float, 2> x) const {
    fanout::launch(ctx, x.size(), AddOne{x, x});
    return 0;
  }
};

struct NextKept {
  auto forward(Context auto& ctx, View<const float, 2> x) const { return fanout::sharded(Next{}.forward(ctx, x)); }
};

Tensor<float, 2> plus(Tensor<float, 2> x, float value) {
  for (float& element : x) element += value;
  return x;
}

}  // namespace

TEST_CASE("on GPUs large arrays arrive complete, from ordinary and from pinned memory") {
  if (no_device()) return;
  const auto x = numbers(700'001, 6);  // 16.8 MB
  const auto wanted = plus(x, 1);
  for (const auto& devices : sets()) {
    const ParallelModel model{Next{}, devices, on_host()};
    CHECK(differences(model(x), wanted) == 0);
    Tensor<float, 2> pinned = cuda::pinned<float>(700'001, 6);
    model.into(pinned)(cuda::pin(x));
    CHECK(differences(pinned, wanted) == 0);
  }
}

TEST_CASE("on GPUs arrays are written in place, and stay on their devices between calls") {
  if (no_device()) return;
  const auto x = numbers(1001, 5);
  for (const auto& devices : sets()) {
    if (cuda::device_count() == 1) {  // else its rows would have to lie on several GPUs
      auto there = fanout::to(x, CudaDevice(0));
      const ParallelModel model{NextInPlace{}, devices};
      for (int n = 0; n < 5; ++n) model(fanout::inout(there));
      CHECK(differences(there, plus(x, 5)) == 0);
    }
    const ParallelModel first{NextKept{}, devices};
    const ParallelModel last{Next{}, devices};
    CHECK(differences(last(first(first(x))), plus(x, 3)) == 0);
  }
}

namespace {

struct Fill {
  View<float, 1> to;
  float value;
  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { to[i] = value; }
};

struct RankSum {
  auto forward(Context auto& ctx, int) const {
    const auto own = fanout::empty<float>(ctx, 1000);
    fanout::launch(ctx, 1000, Fill{own, static_cast<float>(ctx.rank() + 1)});
    ctx.communicator().all_reduce(own);
    return fanout::stack(own);
  }
};

}  // namespace

TEST_CASE("on GPUs a collective sums what kernels wrote") {
  if (no_device()) return;
  for (const auto& devices : sets()) {
    const ParallelModel model{RankSum{}, devices};
    const auto sums = to_host(model(fanout::on_all(), 1));
    const std::size_t ranks = devices.size();
    REQUIRE(sums.size() == 1000 * ranks);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      wrong += sums.data()[i] == static_cast<float>(ranks * (ranks + 1) / 2) ? 0U : 1U;
    }
    CHECK(wrong == 0);
  }
}

// ---- what happens at the same time: kernels that end when the host, or another kernel, has written a flag ----------
namespace {

/// Waits until flags[0 .. count) are set, for ten seconds at most; then it sets `late`.
struct WaitForFlags {
  volatile int* flags;
  std::size_t count;
  volatile int* late;
  volatile int* own;  // set first, if there is one

  FANOUT_HOST_DEVICE void operator()(std::size_t) const {
    if (own != nullptr) *own = 1;
#if defined(__CUDA_ARCH__)
    unsigned long long begin = 0;
    unsigned long long now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    for (std::size_t i = 0; i < count;) {
      if (flags[i] != 0) ++i;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      if (now - begin > 10'000'000'000ULL) {
        *late = 1;
        return;
      }
    }
#endif
  }
};

/// What a call is told besides its rows. A model for GPUs may hold no pointer to the host's memory.
struct Held {
  WaitForFlags wait;
  fanout::detail::Atomic<std::uint32_t>* given;  // counts the shards whose work was given to a device
};

struct HeldNext {
  auto forward(Context auto& ctx, View<const float, 2> x, const Held& held) const {
    if (held.wait.flags != nullptr) fanout::launch(ctx, 1, held.wait);
    auto y = Next{}.forward(ctx, x);
    held.given->fetch_add(1);
    return y;
  }
};

template <class Seen>
bool in_time(const Seen& seen) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!seen()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

bool copies_are_done(const DeviceSet<CudaDevice>& devices) {
  bool done = true;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const fanout::DeviceId id = devices[i].id();
    done = done && cuda::detail::streams_of(cuda::detail::gpu_at(id.index), id.instance).copies().is_idle();
  }
  return done;
}

}  // namespace

TEST_CASE("on GPUs the next batch is copied while a kernel of the batch before runs") {
  if (no_device()) return;
  const auto x = numbers(100'000, 5);
  for (const auto& devices : sets()) {
    Tensor<int, 1> flags = cuda::pinned<int>(2);
    volatile int* const open = flags.data();
    volatile int* const late = flags.data() + 1;
    fanout::detail::Atomic<std::uint32_t> count{0};
    const ParallelModel model{HeldNext{}, devices, on_host()};
    model(x, Held{{}, &count});  // so that nothing has to be made later
    count.store(0);
    auto first = model.async(x, Held{{open, 1, late, nullptr}, &count});
    auto second = model.async(x, Held{{}, &count});
    const bool given = in_time([&] { return count.load() == 2 * devices.size(); });
    const bool copied = given && in_time([&] { return copies_are_done(devices); });
    const bool still_running = !devices[0].stream().is_idle();
    *open = 1;
    CHECK(differences(first.get(), plus(x, 1)) == 0);
    CHECK(differences(second.get(), plus(x, 1)) == 0);
    CHECK(given);
    CHECK(copied);
    CHECK(still_running);
    CHECK(*late == 0);
  }
}

namespace {

struct Together {
  int forward(Context auto& ctx, const WaitForFlags& wait) const {
    fanout::launch(ctx, 1, WaitForFlags{wait.flags, wait.count, wait.late, wait.flags + ctx.rank()});
    return 0;
  }
};

}  // namespace

TEST_CASE("kernels of one call run at the same time, on all GPUs and all devices of a GPU") {
  if (no_device()) return;
  for (const auto& devices : sets()) {
    Tensor<int, 1> flags = cuda::pinned<int>(devices.size() + 1);
    const ParallelModel model{Together{}, devices};
    model(fanout::on_all(), WaitForFlags{flags.data(), devices.size(), flags.data() + devices.size(), nullptr});
    CHECK(flags[devices.size()] == 0);
  }
}
