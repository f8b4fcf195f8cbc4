// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of CUDA that a use of the library makes fails once, each in its turn: the first, the second, and so on
// until nothing is left that could fail. What failed throws an error of the library's, nothing hangs or is left, the
// thread is as it was, and the same model works at the next call. Then the same with a GPU that is lost at that point.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <unistd.h>

#include <csignal>

#include <cuda_runtime_api.h>

#include <fanout/array/to.hpp>
#include <fanout/context/launch.hpp>
#include <fanout/cuda.hpp>
#include <fanout/cuda/transfer/peer_access.hpp>
#include <fanout/stages.hpp>

#include "cuda/gpus.hpp"
#include "cuda/host_launcher.hpp"
#include "cuda/stand_in/stand_in.h"
#include "support/fork.hpp"

using fanout::Context;
using fanout::CudaDevice;
using fanout::DeviceId;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::to_host;
using fanout::View;

namespace {

// ---- what is swept ---------------------------------------------------------------------------------

Tensor<float, 2> numbers(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> tensor(rows, columns);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<float>(i % 1000);
  return tensor;
}

/// y = 2 x + shift, on the device that the context has.
struct Shift {
  Tensor<float, 1> shift{1};
  Tensor<float, 1> other = Tensor<float, 1>(3);  // so that two small arrays go together

  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    auto doubled = fanout::empty<float>(ctx, x.extent(0), x.extent(1));
    fanout::launch(ctx, x.size(), [x, to = doubled](std::size_t i) { to.data()[i] = 2 * x.data()[i]; });
    fanout::launch(ctx, x.size(), [doubled, s = View<const float, 1>(shift), to = y.data()](std::size_t i) {
      to[i] = doubled.data()[i] + s[0];
    });
    return y;
  }
};

Shift shifted_by(float shift) {
  Shift model;
  model.shift[0] = shift;
  return model;
}

void check_shifted(const Tensor<float, 2>& y, const Tensor<float, 2>& x, float shift) {
  REQUIRE(y.extents() == x.extents());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += y.data()[i] == 2 * x.data()[i] + shift ? 0 : 1;
  CHECK(wrong == 0);
}

// ---- the sweep -------------------------------------------------------------------------------------

/// Ends the program if a test does not. Streams take no breaks meanwhile: what is not ordered, the stand-in knows
/// without.
class Watchdog {
 public:
  Watchdog() {
    stand_in_set_delays(0);
    std::signal(SIGALRM, [](int) {
      static constexpr char said[] = "failure_sweep: does not end\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, said, sizeof said - 1);
      ::_exit(1);
    });
    ::alarm(100);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    ::alarm(0);
    const char* delays = std::getenv("FANOUT_STAND_IN_DELAYS");
    stand_in_set_delays(delays == nullptr ? 0 : static_cast<unsigned>(std::atoi(delays)));
  }
};

int gpus_there() { return fanout::cuda::detail::count_gpus().count; }

/// Two GPUs, or the one that is there: with more, the same calls only come more often.
auto two_gpus() { return fanout::cuda_devices({.count = gpus_there() < 2 ? gpus_there() : 2}); }

/// Until all work of all GPUs is done, so that what is counted stands still.
void settle() {
  for (int i = 0; i < gpus_there(); ++i) fanout::cuda::synchronize(i);
}

/// Without what is kept for the next call.
int left(const char* kind) {
  settle();
  fanout_test::release_kept_memory();
  return stand_in_alive(kind);
}

/// Streams and chunks of staging memory of all devices, at most: they are made when first needed.
int streams_there() {
  int devices = 0;
  for (int i = 0; i < gpus_there(); ++i) {
    for (auto* streams = fanout::cuda::detail::gpu_at(i).all_streams().load(); streams != nullptr;
         streams = streams->next())
      ++devices;
  }
  return devices;
}

/// The thread's stack of contexts and its current device, which no call changes.
struct ThreadState {
  int depth = stand_in_depth();
  int current = stand_in_current();
  friend bool operator==(const ThreadState&, const ThreadState&) = default;
};

/// What f() throws, as text; nothing but errors of the library's may come.
template <class F>
std::string refused_with(const F& f) {
  try {
    f();
  } catch (const fanout::Error& error) {
    const std::string said = error.what();
    return said.empty() ? "an error without words" : said;
  }
  return {};
}

/// What a process knows of its GPUs, forgotten, so that the next use is the first. The old is kept, and nobody uses
/// it.
void forget_gpus() {
  using namespace fanout::cuda::detail;
  static auto& forgotten = *new std::vector<const void*>;  // not destroyed, so that it is no leak what it holds
  settle();
  fanout_test::release_kept_memory();
  for (int i = 0; i < gpus_there(); ++i) {
    GpuState* gpu = gpus[i].gpu.load();
    if (gpu == nullptr) continue;
    if (gpu->known_context() != nullptr) {
      const fanout::cuda::DeviceGuard entered(*gpu);
      for (DeviceStreams* streams = gpu->all_streams().load(); streams != nullptr; streams = streams->next()) {
        fanout::cuda::check(::cudaStreamDestroy(streams->compute().get()), "cudaStreamDestroy");
        fanout::cuda::check(::cudaStreamDestroy(streams->copies().get()), "cudaStreamDestroy");
      }
      if (cudaMemPool_t pool = gpu->pool().load())
        fanout::cuda::check(::cudaMemPoolDestroy(pool), "cudaMemPoolDestroy");
    }
    forgotten.push_back(gpu);
    gpus[i].gpu.store(nullptr);
  }
  forgotten.push_back(only_peer_table.load());
  only_peer_table.store(nullptr);
  forgotten.push_back(only_driver.load());
  only_driver.store(nullptr);
  known_count.store(0);
}

/// All calls of use(model) fail, each once, with a model that has been used.
template <class Model, class Use>
void sweep(Model& model, const Use& use, int code = cudaErrorUnknown) {
  const Watchdog watchdog;
  for (int i = 0; i < 3; ++i) use(model);
  const int memory = left("device memory");
  const int events = left("events");
  int refused = 0;
  int nth = 1;
  for (;; ++nth) {
    INFO("call ", nth, " fails");
    const ThreadState before;
    stand_in_fail(nullptr, nth, 1, code);
    const std::string said = refused_with([&] { use(model); });
    const bool ended = stand_in_no_failures() != 0;
    CHECK(ThreadState() == before);
    if (ended) CHECK(said == "");
    if (!said.empty()) ++refused;
    INFO(said);
    CHECK(refused_with([&] { use(model); }) == "");
    CHECK(ThreadState() == before);
    CHECK(left("device memory") == memory);
    CHECK(std::string(stand_in_misuse()) == "");
    if (ended) break;
    REQUIRE(nth < 2000);
  }
  CHECK(refused > 0);
  // Each device has two streams and at most four chunks, with an event each; and events for the calls in flight.
  CHECK(left("streams") <= 2 * streams_there());
  CHECK(left("events") <= events + 8 * streams_there());
  MESSAGE((nth - 1), " calls, ", refused, " refused");
}

/// The same with a GPU that is lost at each of the calls: the error says so, the next use does so too, and a new
/// process is well again.
template <class Model, class Use>
void sweep_loss(const Model& make, const Use& use, int gpu, int step = 1) {
  const Watchdog watchdog;
  for (int nth = 1;; nth += step) {
    INFO("cuda:", gpu, " is lost at call ", nth);
    const ThreadState before;
    const int memory = left("device memory");
    bool ended = false;
    {
      auto model = make();
      use(model);
      stand_in_poison_at(nth, gpu, cudaErrorIllegalAddress);
      const std::string said = refused_with([&] { use(model); });
      ended = stand_in_no_failures() != 0;
      CHECK(ThreadState() == before);
      if (ended) {
        CHECK(said == "");
        break;
      }
      // Work may have been lost that nobody waited for yet; the next use finds it at the latest.
      const std::string next = refused_with([&] { use(model); });
      CHECK(next.find("device cuda:" + std::to_string(gpu) + " is lost") != std::string::npos);
      if (!said.empty()) {
        INFO(said);
        CHECK(said.find("is lost") != std::string::npos);
      }
      CHECK(ThreadState() == before);
    }
    fanout_test::restore_lost_gpus(memory);
    CHECK(std::string(stand_in_misuse()) == "");
    REQUIRE(nth < 2000);
  }
}

/// All calls of the first use of the GPUs fail, each once: of use(make()).
template <class Make, class Use>
void sweep_first_use(const Make& make, const Use& use, int code = cudaErrorUnknown, int step = 1) {
  const Watchdog watchdog;
  forget_gpus();
  const int memory = stand_in_alive("device memory");
  const int streams = stand_in_alive("streams");
  int refused = 0;
  for (int nth = 1;; nth += step) {
    INFO("call ", nth, " fails");
    const ThreadState before;
    stand_in_fail(nullptr, nth, 1, code);
    std::string said = refused_with([&] {
      auto model = make();
      use(model);
    });
    const bool ended = stand_in_no_failures() != 0;
    CHECK(ThreadState() == before);
    if (!said.empty()) ++refused;
    INFO(said);
    said = refused_with([&] {
      auto model = make();
      use(model);
    });
    CHECK(said == "");
    CHECK(ThreadState() == before);
    CHECK(left("device memory") == memory);
    CHECK(left("pinned memory") >= 0);
    forget_gpus();
    CHECK(stand_in_alive("streams") == streams);
    CHECK(std::string(stand_in_misuse()) == "");
    if (ended) break;
    REQUIRE(nth < 2000);
  }
  CHECK(refused > 0);
}

/// A copy that the lost GPU had begun may read what the other one is giving back: it cannot be waited for, nor does
/// anybody see what it read. ThreadSanitizer, where there is no fork either, calls it a race.
constexpr const char* lost_gpu_reads_on = "ThreadSanitizer sees the last copies of a lost GPU";

auto on_main = [](auto& model) {
  const auto x = numbers(11, 3);
  check_shifted(to_host(model(x)), x, 5);
};

}  // namespace

TEST_CASE("failure sweep: results on the main GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{shifted_by(5), two_gpus()};
  stand_in_fresh_thread();
  sweep(model, on_main);
  sweep(model, on_main, cudaErrorMemoryAllocation);
}

TEST_CASE("failure sweep: a thread that has a current device") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{shifted_by(5), two_gpus()};
  stand_in_fresh_thread();
  const fanout::cuda::DeviceGuard entered(1);
  sweep(model, on_main);
}

TEST_CASE("failure sweep: results on the host") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{shifted_by(5), two_gpus(), Options{.output = DeviceId{"host"}}};
  sweep(model, [](auto& m) {
    const auto x = numbers(11, 3);
    check_shifted(m(x), x, 5);
  });
}

TEST_CASE("failure sweep: asynchronous calls") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{shifted_by(5), two_gpus(), Options{.output = DeviceId{"host"}}};
  sweep(model, [](auto& m) {
    const auto x = numbers(9, 3);
    auto first = m.async(x);
    auto second = m.async(x);
    check_shifted(second.get(), x, 5);
    check_shifted(first.get(), x, 5);
  });
}

TEST_CASE("failure sweep: an update and the next call") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  ParallelModel model{shifted_by(5), two_gpus()};
  float shift = 5;
  sweep(model, [&](auto& m) {
    shift += 1;
    m.update([&](Shift& original) { original.shift[0] = shift; });
    const auto x = numbers(11, 3);
    check_shifted(to_host(m(x)), x, shift);
  });
}

TEST_CASE("failure sweep: a model, made and used") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  int none = 0;
  sweep(none, [](int) {
    const ParallelModel model{shifted_by(5), two_gpus()};
    on_main(model);
  });
}

TEST_CASE("failure sweep: large inputs, and one for all") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const std::size_t columns = (std::size_t{9} << 20) / sizeof(float) / 2;  // more than two chunks of staging memory
  const auto forward = [](Context auto& ctx, View<const float, 2> part, View<const float, 2> all) {
    auto y = fanout::output<float>(ctx, part.extent(1));
    fanout::launch(ctx, 1, [part, all, y = View<float, 2>(y)](std::size_t) {
      if (part.size() == 0) return;
      std::memcpy(y.data(), part.data(), part.size() * sizeof(float));
      y(0, 0) = all(0, all.extent(1) - 1);
    });
    return y;
  };
  const ParallelModel model{forward, two_gpus(), Options{.output = DeviceId{"host"}}};
  const auto x = numbers(2, columns);
  const auto all = numbers(1, 700);
  sweep(model, [&](auto& m) {
    const auto y = m(x, fanout::broadcast(all));
    for (const std::size_t i : {0U, 1U}) CHECK(std::memcmp(&y(i, 1), &x(i, 1), (columns - 1) * sizeof(float)) == 0);
    CHECK(y(0, 0) == all(0, 699));
    CHECK(y(1, columns - 1) == x(1, columns - 1));
  });
}

namespace {

void between_gpus(int able, int corrupting) {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  forget_gpus();
  stand_in_set_peer(0, 1, able);
  stand_in_set_corrupting(0, 1, corrupting);
  {
    const ParallelModel model{shifted_by(5), fanout::cuda_devices({0, 1})};
    const CudaDevice first(0);
    const auto use = [&](auto& m) {
      const auto host = numbers(10, 3);
      const auto x = fanout::to(host, first);  // the second GPU has its part of it by way of the first
      check_shifted(to_host(m(x)), host, 5);
    };
    use(model);
    CHECK(fanout::cuda::peer_trusted(0, 1) == (able == 1 && corrupting == 0));
    sweep(model, use);
  }
  forget_gpus();
  stand_in_set_peer(0, 1, 1);
  stand_in_set_corrupting(0, 1, 0);
}

}  // namespace

TEST_CASE("failure sweep: arrays that go from GPU to GPU") { between_gpus(1, 0); }
TEST_CASE("failure sweep: GPUs that do not reach each other") { between_gpus(0, 0); }
TEST_CASE("failure sweep: GPUs between which copies arrive wrong") { between_gpus(1, 1); }

TEST_CASE("failure sweep: several devices on a GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{shifted_by(5), fanout::cuda_devices({.indices = {0}, .count = 3, .oversubscribe = true})};
  sweep(model, on_main);
}

TEST_CASE("failure sweep: GPUs and cores") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{shifted_by(5), fanout::devices_at<CudaDevice>({0}) | fanout::host_devices(1)};
  sweep(model, on_main);
}

TEST_CASE("failure sweep: the first use of a GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  sweep_first_use([] { return ParallelModel{shifted_by(5), fanout::cuda_devices({.indices = {0}})}; }, on_main);
}

TEST_CASE("failure sweep: the first use of two GPUs, and of what is between them") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  sweep_first_use(
      [] {
        return ParallelModel{shifted_by(5), fanout::cuda_devices({0, 1})};
      },
      [](auto& model) {
        const auto host = numbers(10, 3);
        check_shifted(to_host(model(fanout::to(host, CudaDevice(0)))), host, 5);
      },
      cudaErrorUnknown, 9);
}

TEST_CASE("failure sweep: a GPU is lost in a call") {
  if (!fanout_test::has_stand_in(2)) return;
  if (!fanout_test::can_fork) return fanout_test::skip(lost_gpu_reads_on);
  const fanout_test::Watched watched;
  const auto make = [] { return ParallelModel{shifted_by(5), fanout::cuda_devices({0, 1})}; };
  sweep_loss(make, on_main, 1);
  sweep_loss(make, on_main, 0);
}

TEST_CASE("failure sweep: a GPU is lost between copies from GPU to GPU") {
  if (!fanout_test::has_stand_in(2)) return;
  if (!fanout_test::can_fork) return fanout_test::skip(lost_gpu_reads_on);
  const fanout_test::Watched watched;
  sweep_loss(
      [] {
        return ParallelModel{shifted_by(5), fanout::cuda_devices({0, 1})};
      },
      [](auto& model) {
        const auto host = numbers(10, 3);
        check_shifted(to_host(model(fanout::to(host, CudaDevice(0)))), host, 5);
      },
      1);
}

namespace {

/// y = weight * x. Its gradient is found on the GPU.
struct TrainedWeight {
  float weight = 1;

  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    fanout::launch(ctx, x.size(), [x, by = weight, to = y.data()](std::size_t i) { to[i] = by * x.data()[i]; });
    return fanout::saved(y, x);
  }
  auto backward(Context auto& ctx, const auto& saved_x, View<const float, 2> dy) const {
    auto dx = fanout::output<float>(ctx, dy.extent(1));
    const auto gradient = fanout::empty<float>(ctx, 1);
    fanout::launch(ctx, dy.size(), [dy, by = weight, to = dx.data()](std::size_t i) { to[i] = by * dy.data()[i]; });
    fanout::launch(ctx, 1, [x = View<const float, 2>(saved_x), dy, gradient](std::size_t) {
      gradient[0] = 0;
      for (std::size_t i = 0; i < dy.size(); ++i) gradient[0] += x.data()[i] * dy.data()[i];
    });
    return std::pair{dx, fanout::psum(gradient)};
  }
};

/// The sum of the results.
const auto sum_of_results = [](Context auto& ctx, View<const float, 2> y, View<const float, 2>) {
  const auto dy = fanout::empty<float>(ctx, y.extent(0), y.extent(1));
  const auto sum = fanout::empty<float>(ctx, 1);
  fanout::launch(ctx, 1, [y, dy, sum](std::size_t) {
    sum[0] = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      dy.data()[i] = 1;
      sum[0] += y.data()[i];
    }
  });
  return std::pair{fanout::psum(sum), dy};
};

auto in_two_stages(const auto& first, const auto& second) {
  return fanout::Pipeline{fanout::PipelineOptions{.micro_batches = 3}, fanout::stage(first, fanout::cuda_devices({0})),
                          fanout::stage(second, two_gpus())};
}

}  // namespace

TEST_CASE("failure sweep: calls of a pipeline") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const auto net = in_two_stages(shifted_by(5), shifted_by(-10));
  const auto sweep_calls = [&](const auto& call) {
    sweep(net, [&](auto& stages) {
      const auto x = numbers(7, 3);
      const auto y = to_host(call(stages, x));
      for (std::size_t i = 0; i < x.size(); ++i) CHECK(y.data()[i] == 4 * x.data()[i]);
    });
  };
  sweep_calls([](auto& stages, const auto& x) { return stages(x); });
  sweep_calls([](auto& stages, const auto& x) { return stages.async(x).get(); });
}

TEST_CASE("failure sweep: training in stages") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const auto net = in_two_stages(TrainedWeight{2}, TrainedWeight{3});
  sweep(net, [](auto& stages) {
    const auto x = numbers(7, 3);
    const auto [loss, gradients] = stages.train(x, x, sum_of_results);
    const float all = 20 * 21 / 2;  // the sum of x
    CHECK(to_host(loss)[0] == 6 * all);
    CHECK(to_host(std::get<0>(gradients))[0] == 3 * all);
    CHECK(to_host(std::get<1>(gradients))[0] == 2 * all);
  });
}
