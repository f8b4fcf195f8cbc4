// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What happens at the same time in a model's calls, and what is not done at all: shown by kernels that do not end
// before the other thing has been seen. What is not there after a time limit is reported as missing.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/cuda.hpp>
#include <fanout/cuda/memory_info.hpp>

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

TEST_CASE_FIXTURE(fanout_test::Watched, "GPUs copy their rows of a result to the main GPU while a shard still runs") {
  if (!fanout_test::has_stand_in(2)) return;
  const auto devices = fanout::cuda_devices();
  const auto others = static_cast<long>(devices.size()) - 1;
  bool sent = false;
  const ParallelModel model{[&](Context auto& ctx, View<const double, 1> part) {
                              auto y = fanout::output<double>(ctx);
                              auto z = fanout::output<double>(ctx);
                              fanout::launch(ctx, part.size(), Copy{part, y});
                              fanout::launch(ctx, part.size(), Copy{part, z});
                              if (ctx.rank() == 0) {
                                sent = in_time([&] { return stand_in_copies("peer direct") >= 2 * others; });
                              }
                              return std::tuple(y, fanout::psum(1), std::tuple(z));
                            },
                            devices};
  const auto x = ascending(64, 1);
  model(x);  // the first copies between two GPUs are checked
  for (int call = 0; call < 3; ++call) {
    stand_in_forget_counts();
    const auto [y, shards, inner] = model(x);
    CHECK(sent);
    CHECK(stand_in_copies("peer direct") == 2 * others);
    CHECK(shards == others + 1);
    CHECK(fanout::to_host(y) == x);
    CHECK(fanout::to_host(std::get<0>(inner)) == x);
  }
}

TEST_CASE_FIXTURE(
    fanout_test::Watched,
    "GPUs that have sent their rows release their copies of inputs and results while a shard still runs") {
  if (!fanout_test::has_stand_in(2)) return;
  const auto devices = fanout::cuda_devices();
  const auto in_use = [&] {
    std::vector<std::size_t> bytes;
    for (std::size_t i = 1; i < devices.size(); ++i) bytes.push_back(cuda::memory_allocated(devices[i]));
    return bytes;
  };
  std::vector<std::size_t> before;
  bool released = false;
  const ParallelModel model{[&](Context auto& ctx, View<const double, 1> part) {
                              auto y = fanout::output<double>(ctx);
                              const auto between = fanout::empty<double>(ctx, part.size());
                              fanout::launch(ctx, part.size(), Copy{part, between});
                              fanout::launch(ctx, part.size(), Copy{between, y});
                              if (ctx.rank() == 0 && !before.empty())
                                released = in_time([&] { return in_use() == before; });
                              return y;
                            },
                            devices};
  const auto x = ascending(64, 1);
  model(x);  // the first use of a GPU leaves some
  before = in_use();
  for (int call = 0; call < 3; ++call) {
    CHECK(fanout::to_host(model(x)) == x);
    CHECK(released);
  }
}

TEST_CASE_FIXTURE(fanout_test::Watched, "apply leaves each result on the GPU that made it") {
  if (!fanout_test::has_stand_in(2)) return;
  const auto devices = fanout::cuda_devices();
  const auto replicas = fanout::replicate(Scaled{ascending(1, 3)}, devices);
  auto outputs = fanout::apply(replicas, fanout::scatter(devices, ascending(64, 1)));
  for (std::size_t i = 0; i < devices.size(); ++i) CHECK(outputs[i].space() == devices[i].memory().space);
  CHECK(fanout::to_host(fanout::gather(std::move(outputs)))[63] == 192);
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

namespace {

struct Counts {
  fanout::detail::Atomic<std::uint32_t>* ran;
  void operator()(std::size_t) const { ran->fetch_add(1); }
};

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched, "a device whose forward allocates does not hold up the others on its GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const auto devices = fanout::cuda_devices({.count = 4 * cuda::device_count(), .oversubscribe = true});
  fanout_test::Barrier barrier;
  fanout::detail::Atomic<std::uint32_t> ran{0};
  const auto forward = [&](Context auto& ctx, View<const double, 1> x) {
    auto y = fanout::output<double>(ctx);
    for (int i = 0; i < 3; ++i) {
      if (ctx.rank() == 0) fanout::launch(ctx, 1, Hold{&barrier});
      [[maybe_unused]] const auto temporary = Tensor<double, 1>(fanout::Extents<1>{100}, ctx.device().memory());
      fanout::launch(ctx, x.size(), Copy{x, y});
      if (ctx.rank() != 0) fanout::launch(ctx, 1, Counts{&ran});
    }
    return y;
  };
  const ParallelModel model{forward, devices};
  const auto x = ascending(1001, 1);
  auto pending = model.async(x);
  CHECK(in_time([&] { return ran.load() == 3 * (devices.size() - 1); }));
  barrier.open();
  const auto y = fanout::to(pending.get(), fanout::host_devices(1)[0]);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == x[i]);
}

TEST_CASE_FIXTURE(fanout_test::Watched, "batches on the main GPU are copied to the others while these still work") {
  if (!fanout_test::has_stand_in(2)) return;
  const auto devices = fanout::cuda_devices();
  fanout_test::Barrier barrier;
  fanout::detail::Atomic<std::uint32_t> begun{0};
  const auto forward = [&](Context auto& ctx, View<const double, 1> x) {
    if (ctx.rank() != 0) fanout::launch(ctx, 1, Hold{&barrier});
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Copy{x, y});
    begun.fetch_add(1);
    return y;
  };
  const ParallelModel model{forward, devices, Options{.output = fanout::DeviceId{"host"}}};
  const auto first = ascending(1001, 1), second = ascending(1001, 5000);
  const auto count = static_cast<std::uint32_t>(devices.size());
  auto one = model.async(fanout::to(first, devices[0]));
  auto two = model.async(fanout::to(second, devices[0]));
  const bool given = in_time([&] { return begun.load() == 2 * count; });
  const bool copied = given && in_time([&] { return copies_are_done(devices); });
  // Who uses the main GPU's memory meanwhile waits for none of this.
  fanout::detail::Atomic<bool> arrived{false};
  Tensor<double, 1> elsewhere;
  std::thread other([&] {
    elsewhere = fanout::to(fanout::to(second, devices[0]), CudaDevice(1, 1));
    arrived.store(true);
  });
  const bool alone = in_time([&] { return arrived.load(); });
  const bool still_running = !devices[1].stream().is_idle();
  barrier.open();
  other.join();
  const auto y = one.get();
  const auto z = two.get();
  CHECK(given);
  CHECK(copied);
  CHECK(alone);
  CHECK(still_running);
  const auto back = fanout::to(elsewhere, fanout::host_devices(1)[0]);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(y[i] == first[i]);
    CHECK(z[i] == second[i]);
    CHECK(back[i] == second[i]);
  }
}

TEST_CASE_FIXTURE(fanout_test::Watched,
                  "memory that another GPU still reads is released and overwritten only afterwards") {
  if (!fanout_test::has_stand_in(2)) return;
  const CudaDevice first(0), second(1);
  const auto numbers = ascending(1000, 1), others = ascending(1000, 9000);
  REQUIRE(cuda::peer_trusted(0, 1));  // whose check waits for the GPUs
  for (const bool releases : {true, false}) {
    fanout_test::Barrier barrier;
    auto source = fanout::to(numbers, first);
    cuda::detail::DeviceStreams& streams = cuda::detail::streams_of(cuda::detail::gpu_at(1), 0);
    Tensor<double, 1> copy;
    fanout_test::call_in(streams.copies(), barrier);  // so the copy begins late
    std::thread opens;
    {
      const auto entered = second.enter();
      copy = Tensor<double, 1>::uninitialized(source.extents(), second.memory());
      fanout::backend::transfer(second.memory(), copy.data(), source.space(), source.data(), source.storage().bytes());
      opens = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        barrier.open();
      });
      if (releases) {
        source = {};
      } else {
        fanout::backend::transfer(first.memory(), source.data(), fanout::host_memory, others.data(),
                                  others.storage().bytes());
      }
    }
    opens.join();
    second.synchronize();
    const auto back = fanout::to(copy, fanout::host_devices(1)[0]);
    for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(back[i] == numbers[i]);
  }
}

namespace {

struct Count {
  View<double, 1> to;
  std::size_t first;
  void operator()(std::size_t i) const { to[i] = static_cast<double>(first + i); }
};

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched, "all GPUs send their parts of a result home at the same time") {
  if (!fanout_test::has_stand_in(2)) return;
  const int gpus = cuda::device_count();
  const auto forward = [](Context auto& ctx, fanout::RowRange rows) {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, rows.size(), Count{y, *rows.begin()});
    return y;
  };
  const auto added = [forward](Context auto& ctx, fanout::RowRange rows) { return fanout::psum(forward(ctx, rows)); };
  constexpr std::size_t rows = 840;
  const auto most_at_once = [&](const auto& model, const auto& call) {
    static_cast<void>(model(fanout::Range{rows}));  // so that all is made that is kept
    for (int i = 0; i < gpus; ++i) cuda::synchronize(i);
    stand_in_forget_counts();
    stand_in_set_copy_cost(50'000);
    call(model);
    stand_in_set_copy_cost(0);
    return stand_in_most_copies_at_once();
  };
  const fanout::DeviceId host{"host"};
  const ParallelModel to_host{forward, fanout::cuda_devices(), Options{.output = host}};
  Tensor<double, 1> y;
  CHECK(most_at_once(to_host, [&](const auto& model) { y = model(fanout::Range{rows}); }) == gpus);
  auto pinned = cuda::pinned<double>(rows);
  CHECK(most_at_once(to_host, [&](const auto& model) { model.into(pinned)(fanout::Range{rows}); }) == gpus);
  const ParallelModel to_main{forward, fanout::cuda_devices()};
  Tensor<double, 1> z;
  CHECK(most_at_once(to_main, [&](const auto& model) { z = model(fanout::Range{rows}); }) == gpus - 1);
  const auto back = fanout::to(z, fanout::host_devices(1)[0]);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto number = static_cast<double>(i);
    CHECK((y[i] == number && pinned[i] == number && back[i] == number));
  }
  const ParallelModel sums{added, fanout::cuda_devices(), Options{.output = host}};
  CHECK(most_at_once(sums, [&](const auto& model) { y = model(fanout::Range{rows}); }) == gpus);
  CHECK(y.size() == rows / static_cast<std::size_t>(gpus));
}
