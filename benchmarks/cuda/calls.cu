// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a model's call costs on GPUs, as ratios to the same written by hand with streams, events and memory that were
// made before: one call with an empty kernel, with a few rows there and back, and with a kernel over rows that are
// there; copies to and from the GPUs, and how much of the copies is hidden behind kernels. By hand, ordinary memory is
// copied by one cudaMemcpyAsync, and batches that overlap with kernels come from page-locked memory. Without a GPU it
// says so and ends with 77.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fanout/cuda.hpp>

#include "benchmarks/cuda/by_hand.hpp"
#include "benchmarks/cuda/compare.hpp"
#include "examples/support/arguments.hpp"

namespace cuda = fanout::cuda;
using benchmarks::ByHand;
using benchmarks::seconds_of;
using fanout::Context;
using fanout::ParallelModel;
using Rows = fanout::Tensor<float, 2>;

namespace {

constexpr std::size_t row_bytes = 4096;

struct EmptyKernel {
  int forward(Context auto& ctx) const {
    fanout::launch(ctx, 1, benchmarks::Nothing{});
    return 0;
  }
};

struct Taken {
  int forward(Context auto& ctx, fanout::View<const float, 2>, std::uint64_t nanoseconds) const {
    if (nanoseconds != 0) fanout::launch(ctx, 1, benchmarks::Spin{nanoseconds});
    return 0;
  }
};

/// Rows that nobody has written, and where they are: only that they come back counts.
struct Given {
  auto forward(Context auto& ctx, fanout::View<const float, 2> x) const {
    return fanout::output<float>(ctx, x.extent(1));
  }
};
struct Kept {
  auto forward(Context auto& ctx, fanout::View<const float, 2> x) const {
    return fanout::sharded(fanout::output<float>(ctx, x.extent(1)));
  }
};

struct Next {
  auto forward(Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    fanout::launch(ctx, x.size(), benchmarks::AddOne{y.data(), x.data()});
    return y;
  }
};
struct NextKept {
  auto forward(Context auto& ctx, fanout::View<const float, 2> x) const {
    return fanout::sharded(Next{}.forward(ctx, x));
  }
};

std::string counted(int devices) { return std::to_string(devices) + (devices == 1 ? " device" : " devices"); }

/// How much of the shorter of two things is hidden behind the other, in percent.
double hidden(double one, double other, double both) {
  return 100 * (one + other - both) / (one < other ? one : other);
}

}  // namespace

int main(int argc, char** argv) try {
  int rounds = 15, calls = 200, batches = 8;
  std::size_t megabytes = 64;
  std::string json;
  examples::Arguments arguments("Compares calls of models on GPUs with the same written by hand.");
  arguments.add("rounds", rounds, {1, 100000}, "rounds, of which the median counts");
  arguments.add("calls", calls, {1, 1000000}, "calls with an empty kernel in a round");
  arguments.add("batches", batches, {1, 1000}, "batches that follow each other, in a round of the overlap");
  arguments.add("megabytes", megabytes, {1, 65536}, "MiB that go to or from each device");
  arguments.add("json", json, "file to which all numbers are written");
  arguments.parse(argc, argv);
  if (!cuda::is_available()) {
    std::printf("skipped: no CUDA device (%s)\n", cuda::unavailable_reason().c_str());
    return 77;
  }

  const int gpus = cuda::device_count();
  const auto version = [](auto function) {
    int number = 0;
    cuda::check(function(&number), "version");
    return std::to_string(number / 1000) + '.' + std::to_string(number % 1000 / 10);
  };
  const std::string machine = std::to_string(gpus) + " x " + cuda::device_name(0) + ", driver for CUDA " +
                              version(&cudaDriverGetVersion) + ", runtime " + version(&cudaRuntimeGetVersion);
  std::printf("%s\n%d rounds, %d calls, %d batches, %zu MiB for each device\n\n", machine.c_str(), rounds, calls,
              batches, megabytes);
  benchmarks::Comparisons comparisons(rounds);

  const auto many = [calls](const auto& call) {
    return 1e6 * seconds_of([&] {
             for (int n = 0; n < calls; ++n) call();
           }) /
           calls;
  };
  for (int count = 1; count <= gpus; ++count) {
    const ParallelModel model{EmptyKernel{}, fanout::cuda_devices({.count = count})};
    ByHand by_hand(count, row_bytes);
    comparisons.add(
        "call with an empty kernel, " + counted(count), "us", [&] { return many([&] { model(fanout::on_all()); }); },
        [&] { return many([&] { by_hand.launch(); }); });
    const Rows x(static_cast<std::size_t>(count), row_bytes / sizeof(float));
    Rows y(static_cast<std::size_t>(count), row_bytes / sizeof(float));
    const ParallelModel next{Next{}, fanout::cuda_devices({.count = count}),
                             fanout::Options{.output = fanout::DeviceId{"host"}}};
    comparisons.add(
        "4 KiB there and back, " + counted(count), "us", [&] { return many([&] { next.into(y)(x); }); },
        [&] { return many([&] { by_hand.add_one(x.data(), y.data()); }); });
  }

  std::vector<int> counts{1};
  if (gpus > 1) counts.push_back(gpus);
  for (const int count : counts) {
    const std::size_t bytes = (megabytes << 20U) * static_cast<std::size_t>(count);
    const auto rate = [bytes](const auto& call) { return static_cast<double>(bytes) / 1e9 / seconds_of(call); };
    const auto devices = fanout::cuda_devices({.count = count});
    const std::string on = ", " + counted(count);
    ByHand by_hand(count, megabytes << 20U);
    Rows x(bytes / row_bytes, row_bytes / sizeof(float));
    Rows y(bytes / row_bytes, row_bytes / sizeof(float));
    const Rows pinned_x = cuda::pin(x);
    Rows pinned_y = cuda::pin(y);

    {
      const auto there = ParallelModel{Kept{}, devices}(x);
      const ParallelModel next{NextKept{}, devices};
      comparisons.add(
          "kernel over rows that are there" + on, "us", [&] { return many([&] { next(there); }); },
          [&] { return many([&] { by_hand.add_one(); }); });
    }

    const ParallelModel taken{Taken{}, devices};
    const auto up = [&] { return rate([&] { by_hand.copy(cudaMemcpyHostToDevice); }); };
    comparisons.add(
        "to the devices" + on, "GB/s", [&] { return rate([&] { taken(x, 0U); }); },
        [&] { return rate([&] { by_hand.copy(cudaMemcpyHostToDevice, x.data()); }); });
    comparisons.add(
        "to the devices, pinned" + on, "GB/s", [&] { return rate([&] { taken(pinned_x, 0U); }); }, up);

    const ParallelModel given{Given{}, devices, fanout::Options{.output = fanout::DeviceId{"host"}}};
    const auto there = ParallelModel{Kept{}, devices}(x);
    const auto down = [&] { return rate([&] { by_hand.copy(cudaMemcpyDeviceToHost); }); };
    comparisons.add(
        "to the host" + on, "GB/s", [&] { return rate([&] { given.into(y)(there); }); },
        [&] { return rate([&] { by_hand.copy(cudaMemcpyDeviceToHost, y.data()); }); });
    comparisons.add(
        "to the host, pinned" + on, "GB/s", [&] { return rate([&] { given.into(pinned_y)(there); }); }, down);

    // Kernels as long as the copies, so that all could be hidden.
    const auto in_a_row = [&](const Rows& input, std::uint64_t nanoseconds) {
      std::vector<decltype(taken.async(input, nanoseconds))> pending;
      for (int n = 0; n < batches; ++n) pending.push_back(taken.async(input, nanoseconds));
      for (auto& one : pending) one.get();
    };
    const auto share = [batches](const auto& run) {
      const double copies = seconds_of([&] { run(0); });
      const auto each = static_cast<std::uint64_t>(1e9 * copies / batches);
      const double both = seconds_of([&] { run(each); });
      return hidden(copies, static_cast<double>(each) * batches / 1e9, both);
    };
    const auto best = [&] { return share([&](std::uint64_t each) { by_hand.batches(batches, each); }); };
    comparisons.add(
        "copies behind kernels" + on, "%", [&] { return share([&](std::uint64_t each) { in_a_row(x, each); }); }, best);
    comparisons.add(
        "copies behind kernels, pinned" + on, "%",
        [&] { return share([&](std::uint64_t each) { in_a_row(pinned_x, each); }); }, best);
  }
  if (!json.empty()) comparisons.write_json(json, machine);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
