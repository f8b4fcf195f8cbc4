// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// launch() in a .cu, on cores and on GPUs by the same code.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/cuda_devices.hpp>
#include <fanout/cuda/launch.cuh>
#include <fanout/fanout.hpp>

#include "support/skip.hpp"

namespace {

using namespace fanout::literals;

static_assert(std::is_trivially_copyable_v<fanout::View<const float, 2>>);
static_assert(std::is_trivially_copyable_v<fanout::Output<float, 2>>);
static_assert(std::is_trivially_copyable_v<fanout::RandomStream>);

/// The rows of a matrix, less their mean, with noise: an output, views and random numbers in a kernel.
struct Center {
  fanout::Output<double, 2> output;
  fanout::View<double, 1> mean;
  fanout::View<const double, 2> input;
  fanout::RandomStream first;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    double sum = 0;
    for (std::size_t k = 0; k < input.extent(1); ++k) sum += input(i, k);
    mean[i] = sum / static_cast<double>(input.extent(1));
    fanout::RandomStream random = first.after(i);
    for (std::size_t k = 0; k < input.extent(1); ++k) {
      output.row(i)[k] = input.rows({i, i + 1})(0, k) - mean[i] + random.uniform();
    }
  }
};

/// Reads what a launch before it wrote.
struct Double {
  fanout::View<double, 1> mean;
  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { mean[i] *= 2; }
};

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> input) const {
    auto output = fanout::output<double>(ctx, input.extent(1));
    auto mean = fanout::output<double>(ctx);
    fanout::launch(ctx, input.extent(0), Center{output, mean, input, ctx.random(0)});
    fanout::launch(ctx, input.extent(0), Double{mean});
    return fanout::dict("centered"_k = output, "twice"_k = fanout::dict("mean"_k = mean));
  }
};

struct WriteIndex {
  fanout::View<std::uint64_t, 1> indices;
  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { indices[i] += i + 1; }
};

struct Indices {
  auto forward(fanout::Context auto& ctx, fanout::View<const std::uint64_t, 1> zeros) const {
    auto indices = fanout::output<std::uint64_t>(ctx);
    fanout::launch(ctx, zeros.size(), Copy{indices, zeros});
    fanout::launch(ctx, zeros.size(), WriteIndex{indices});
    return indices;
  }

  struct Copy {
    fanout::View<std::uint64_t, 1> to;
    fanout::View<const std::uint64_t, 1> from;
    FANOUT_HOST_DEVICE void operator()(std::size_t i) const { to[i] = from[i]; }
  };
};

/// A lambda that nvcc takes for GPUs, too. Its result is spelt out: nvcc takes none in a function whose result is
/// `auto`.
struct Squares {
  template <fanout::Context C>
  fanout::Output<double, 1> forward(C& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), [=] FANOUT_HOST_DEVICE(std::size_t i) { y[i] = x[i] * x[i]; });
    return y;
  }
};

/// For GPUs alone: host code cannot call it.
struct Halve {
  fanout::View<double, 1> to;
  fanout::View<const double, 1> from;
  __device__ void operator()(std::size_t i) const { to[i] = from[i] / 2; }
};

struct Halves {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Halve{y, x});
    return y;
  }
};

}  // namespace

TEST_CASE("a launch on GPUs takes a function marked __device__ alone") {
  if (fanout::CudaDevice::visible().empty()) return fanout_test::skip("no CUDA device");
  const fanout::ParallelModel model{Halves{}, fanout::cuda_devices()};
  const auto y = fanout::to_host(model(std::vector{1.0, 2.0, 3.0}));
  REQUIRE(y.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(y[i] == static_cast<double>(i + 1) / 2);
}

TEST_CASE_TEMPLATE("a launch takes a lambda marked __host__ __device__", D, fanout::HostDevice, fanout::CudaDevice) {
  if (D::visible().empty()) return fanout_test::skip("no CUDA device");
  const fanout::ParallelModel<Squares, fanout::AllVisible<D>> model{Squares{}};
  const auto y = fanout::to_host(model(std::vector{1.0, 2.0, 3.0}));
  REQUIRE(y.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(y[i] == static_cast<double>((i + 1) * (i + 1)));
}

TEST_CASE_TEMPLATE("a launch works on the rows of each device, in the order of the launches", D, fanout::HostDevice,
                   fanout::CudaDevice) {
  if (D::visible().empty()) return fanout_test::skip("no CUDA device");
  const std::vector<double> values{1, 2, 3, 5, 5, 5, 0, 4, 8, -1, 0, 1};
  const fanout::ParallelModel<Model, fanout::AllVisible<D>> model{Model{}};
  const auto result = fanout::to_host(model(fanout::View<const double, 2>(values.data(), 4, 3)));
  const auto& centered = result["centered"_k];
  const auto& mean = result["twice"_k]["mean"_k];
  const std::array<double, 4> expected{2, 5, 4, 0};
  REQUIRE(centered.extent(0) == 4);
  REQUIRE(mean.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(mean[i] == 2 * expected[i]);
    for (std::size_t k = 0; k < 3; ++k) {
      const double noise = centered(i, k) - (values[3 * i + k] - expected[i]);
      CHECK(noise >= 0);
      CHECK(noise < 1);
    }
  }
}

TEST_CASE_TEMPLATE("a launch calls f once for each index, however many there are", D, fanout::HostDevice,
                   fanout::CudaDevice) {
  if (D::visible().empty()) return fanout_test::skip("no CUDA device");
  const fanout::ParallelModel model{Indices{}, fanout::devices_at<D>(std::array{0})};
  // Around a block, and more than a grid has threads.
  std::vector<std::size_t> sizes{0, 1, 255, 256, 257, 100'000};
  if (!std::is_same_v<D, fanout::HostDevice>) sizes.push_back(65536 * 256 + 300);
  for (const std::size_t n : sizes) {
    const auto indices = fanout::to_host(model(std::vector<std::uint64_t>(n, 0)));
    REQUIRE(indices.size() == n);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += indices[i] == i + 1 ? 0U : 1U;
    CHECK_MESSAGE(wrong == 0, n);
  }
}
