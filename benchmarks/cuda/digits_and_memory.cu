// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many digits of results on a GPU agree with the host's, and how much memory comes back when a model is gone,
// beside the same by hand. Ends with 1 below ten digits or 99 % of the memory, and with 77 without a GPU.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <fanout/cuda.hpp>

#include "benchmarks/cuda/compare.hpp"
#include "benchmarks/cuda/kernels.hpp"
#include "examples/support/arguments.hpp"

namespace cuda = fanout::cuda;
using benchmarks::check;
using fanout::Context;

namespace {

/// A sum of a hundred terms: what another order, or another way to round, would change.
struct Sum {
  double* to;
  const double* from;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    double sum = 0;
    for (int k = 1; k <= 100; ++k)
      sum += std::sin(from[i] * k) * std::exp(-from[i]) / std::sqrt(static_cast<double>(k));
    to[i] = sum;
  }
};

struct Sums {
  auto forward(Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Sum{y.data(), x.data()});
    return y;
  }
};

struct Weights {
  fanout::Tensor<float, 1> weights;

  int forward(Context auto& ctx, int) const {
    const auto temporary = fanout::empty<float>(ctx, weights.size());
    return temporary.size() == weights.size() ? 1 : 0;
  }
};

/// Digits that all numbers share with the wanted ones, by the largest relative difference.
double digits(const double* found, const double* wanted, std::size_t size) {
  double worst = 1e-17;
  for (std::size_t i = 0; i < size; ++i) {
    const double off = std::abs(found[i] - wanted[i]) / std::max(std::abs(wanted[i]), 1e-3);
    worst = std::isnan(off) ? 1 : std::max(worst, off);
  }
  return -std::log10(worst);
}

}  // namespace

int main(int argc, char** argv) try {
  int rounds = 5;
  std::size_t size = 100'000, megabytes = 256;
  std::string json;
  examples::Arguments arguments("Compares results on GPUs with the host's, and memory before and after a model.");
  arguments.add("rounds", rounds, {1, 100000}, "rounds, of which the median counts");
  arguments.add("size", size, {1, 100'000'000}, "numbers that are computed");
  arguments.add("megabytes", megabytes, {1, 65536}, "MiB of a model's weights");
  arguments.add("json", json, "file to which all numbers are written");
  arguments.parse(argc, argv);
  if (!cuda::is_available()) {
    std::printf("skipped: no CUDA device (%s)\n", cuda::unavailable_reason().c_str());
    return 77;
  }
  benchmarks::Comparisons comparisons(rounds);
  double fewest = 17, least = 100;

  {
    fanout::Tensor<double, 1> x(size), wanted(size), found(size);
    for (std::size_t i = 0; i < size; ++i) x[i] = 1 + static_cast<double>(i) / static_cast<double>(size);
    for (std::size_t i = 0; i < size; ++i) Sum{wanted.data(), x.data()}(i);
    const fanout::ParallelModel model{Sums{}, fanout::cuda_devices(),
                                      fanout::Options{.output = fanout::DeviceId{"host"}}};
    double* there[2] = {};
    for (double*& data : there) check(cudaMalloc(&data, size * sizeof(double)), "cudaMalloc");
    comparisons.add(
        "digits as on the host", "digits",
        [&] {
          model.into(found)(x);
          const double same = digits(found.data(), wanted.data(), size);
          fewest = std::min(fewest, same);
          return same;
        },
        [&] {
          check(cudaMemcpy(there[0], x.data(), size * sizeof(double), cudaMemcpyHostToDevice), "cudaMemcpy");
          benchmarks::start(cudaStream_t{}, size, Sum{there[1], there[0]});
          check(cudaMemcpy(found.data(), there[1], size * sizeof(double), cudaMemcpyDeviceToHost), "cudaMemcpy");
          return digits(found.data(), wanted.data(), size);
        });
    for (double* data : there) check(cudaFree(data), "cudaFree");
  }

  // What came back, in percent of what was taken.
  const auto returned = [](double before, double during, double after) {
    return 100 * (after - during) / (before - during);
  };
  const auto free_bytes = [] { return static_cast<double>(cuda::memory_info(0).free); };
  const auto by_hand = [&] {
    cuda::empty_cache();
    const double before = free_bytes();
    void* data = nullptr;
    check(cudaMalloc(&data, megabytes << 20U), "cudaMalloc");
    const double during = free_bytes();
    check(cudaFree(data), "cudaFree");
    return returned(before, during, free_bytes());
  };
  const auto with_model = [&](const auto& bytes, bool trim) {
    cuda::synchronize(0);
    cuda::empty_cache();
    const double before = bytes();
    using Model = decltype(fanout::ParallelModel{Weights{}, fanout::cuda_devices(1)});
    auto model = std::make_unique<Model>(Weights{fanout::Tensor<float, 1>(megabytes << 18U)}, fanout::cuda_devices(1));
    const auto ones = (*model)(fanout::on_all(), 1);
    if (ones[0] != 1) least = 0;
    const double during = bytes();
    model.reset();
    cuda::synchronize(0);
    if (trim) cuda::empty_cache();
    const double back = returned(before, during, bytes());
    least = std::min(least, back);
    return back;
  };
  const auto unused = [] { return -static_cast<double>(cuda::memory_allocated(0)); };
  comparisons.add(
      "released when a model is destroyed", "%", [&] { return with_model(unused, false); }, by_hand);
  comparisons.add(
      "free for others after empty_cache()", "%", [&] { return with_model(free_bytes, true); }, by_hand);

  if (!json.empty()) comparisons.write_json(json, cuda::device_name(0));
  std::fflush(stdout);
  if (fewest < 10) std::printf("FAULT: only %.1f digits are the host's\n", fewest);
  if (least < 99) std::printf("FAULT: only %.1f %% of the memory came back\n", least);
  return fewest < 10 || least < 99 ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
