// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three layers with bias and ReLU, on rows that are on the GPU: a model that calls cuBLAS in `forward`, on one device
// and on two devices of a GPU, beside cuBLAS in a stream by hand, with memory that was made before. Ends with 77
// without a GPU. On the stand-in a loop takes the place of cuBLAS.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <fanout/cuda.hpp>

#if defined(__CUDACC__)
#include <cublas_v2.h>
#endif

#include "benchmarks/cuda/compare.hpp"
#include "benchmarks/cuda/kernels.hpp"
#include "examples/support/arguments.hpp"

namespace cuda = fanout::cuda;
using benchmarks::check;
using fanout::Context;
using Matrix = fanout::Tensor<float, 2>;
using Vector = fanout::Tensor<float, 1>;

namespace {

/// y = x * transposed(weight), in one stream. Rows of all three matrices are contiguous.
class Products {
 public:
#if defined(__CUDACC__)
  explicit Products(cudaStream_t stream) {
    must(cublasCreate(&handle_), "cublasCreate");
    must(cublasSetStream(handle_, stream), "cublasSetStream");
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products() { static_cast<void>(cublasDestroy(handle_)); }

  void operator()(const float* x, const float* weight, float* y, std::size_t rows, std::size_t width) const {
    const float one = 1;
    const float none = 0;
    const int n = static_cast<int>(width);
    // cuBLAS counts by columns, so to it all of them are transposed.
    must(cublasSgemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, n, static_cast<int>(rows), n, &one, weight, n, x, n, &none, y,
                     n),
         "cublasSgemm");
  }

 private:
  static void must(cublasStatus_t status, const char* call) {
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw fanout::Error(std::string(call) + " returned " + std::to_string(static_cast<int>(status)));
    }
  }
  cublasHandle_t handle_ = nullptr;
#else
  explicit Products(cudaStream_t stream) : stream_(stream) {}

  void operator()(const float* x, const float* weight, float* y, std::size_t rows, std::size_t width) const {
    benchmarks::start(stream_, rows * width, Element{x, weight, y, width});
  }

 private:
  struct Element {
    const float* x;
    const float* weight;
    float* y;
    std::size_t width;
    void operator()(std::size_t i) const {
      float sum = 0;
      for (std::size_t k = 0; k < width; ++k) sum += x[i / width * width + k] * weight[i % width * width + k];
      y[i] = sum;
    }
  };
  cudaStream_t stream_;
#endif
};

struct BiasAndRelu {
  float* y;
  const float* bias;
  std::size_t width;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    const float value = y[i] + bias[i % width];
    y[i] = value > 0 ? value : 0;
  }
};

/// One Products for each rank: each has its own stream. Borrowed.
struct ProductsOfRanks {
  const std::unique_ptr<Products>* each;
};

struct Mlp {
  Matrix w1, w2, w3;
  Vector b1, b2, b3;

  auto forward(Context auto& ctx, fanout::View<const float, 2> x, ProductsOfRanks products) const {
    const std::size_t rows = x.extent(0), width = x.extent(1);
    const Products& product = *products.each[ctx.rank()];
    auto y = fanout::output<float>(ctx, width);
    auto first = fanout::empty<float>(ctx, rows, width);
    auto second = fanout::empty<float>(ctx, rows, width);
    product(x.data(), w1.data(), first.data(), rows, width);
    fanout::launch(ctx, rows * width, BiasAndRelu{first.data(), b1.data(), width});
    product(first.data(), w2.data(), second.data(), rows, width);
    fanout::launch(ctx, rows * width, BiasAndRelu{second.data(), b2.data(), width});
    product(second.data(), w3.data(), y.data(), rows, width);
    fanout::launch(ctx, rows * width, BiasAndRelu{y.data(), b3.data(), width});
    return y;
  }
};

/// Numbers between -1 and 1, the same in each run.
template <class Array>
void fill(Array& array, double step, double scale) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    array.data()[i] = static_cast<float>(scale * std::sin(step * static_cast<double>(i)));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  int rounds = 15, calls = 10;
  std::size_t batch = 4096, width = 1024;
  std::string json;
  examples::Arguments arguments("Compares a network of three layers with cuBLAS by hand.");
  arguments.add("rounds", rounds, {1, 100000}, "rounds, of which the median counts");
  arguments.add("calls", calls, {1, 100000}, "calls in a round");
  arguments.add("batch", batch, {1, 1'000'000}, "rows");
  arguments.add("width", width, {1, 16384}, "columns");
  arguments.add("json", json, "file to which all numbers are written");
  arguments.parse(argc, argv);
  if (!cuda::is_available()) {
    std::printf("skipped: no CUDA device (%s)\n", cuda::unavailable_reason().c_str());
    return 77;
  }
  Mlp mlp{Matrix(width, width), Matrix(width, width), Matrix(width, width),
          Vector(width),        Vector(width),        Vector(width)};
  const double scale = 2 / std::sqrt(static_cast<double>(width));
  fill(mlp.w1, 0.7, scale), fill(mlp.w2, 1.3, scale), fill(mlp.w3, 2.1, scale);
  fill(mlp.b1, 0.3, 1), fill(mlp.b2, 0.5, 1), fill(mlp.b3, 0.9, 1);
  const fanout::CudaDevice gpu(0);
  Matrix x(batch, width);
  fill(x, 0.11, 1);
  const Matrix there = fanout::to(x, gpu);

  // By hand: the weights on the GPU, a stream, and three arrays.
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const Products product(stream);
  const Matrix weights[] = {fanout::to(mlp.w1, gpu), fanout::to(mlp.w2, gpu), fanout::to(mlp.w3, gpu)};
  const Vector biases[] = {fanout::to(mlp.b1, gpu), fanout::to(mlp.b2, gpu), fanout::to(mlp.b3, gpu)};
  Matrix layers[] = {fanout::to(x, gpu), fanout::to(x, gpu), fanout::to(x, gpu)};
  const auto by_hand = [&] {
    const float* from = there.data();
    for (std::size_t n = 0; n < 3; ++n) {
      product(from, weights[n].data(), layers[n].data(), batch, width);
      benchmarks::start(stream, batch * width, BiasAndRelu{layers[n].data(), biases[n].data(), width});
      from = layers[n].data();
    }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  };

  const auto many = [calls](const auto& call) {
    return 1e6 * benchmarks::seconds_of([&] {
             for (int n = 0; n < calls; ++n) call();
           }) /
           calls;
  };
  const std::string shape = std::to_string(batch) + " x " + std::to_string(width);
  benchmarks::Comparisons comparisons(rounds);
  bool right = true;
  for (const int count : {1, 2}) {
    const auto devices = fanout::cuda_devices({.indices = {0}, .count = count, .oversubscribe = true});
    std::vector<std::unique_ptr<Products>> products;
    for (int i = 0; i < count; ++i) {
      products.push_back(std::make_unique<Products>(devices[static_cast<std::size_t>(i)].stream().get()));
    }
    const ProductsOfRanks of_ranks{products.data()};
    const fanout::ParallelModel model{mlp, devices};
    comparisons.add(
        "MLP " + shape + (count == 1 ? ", 1 device" : ", 2 devices of a GPU"), "us",
        [&] { return many([&] { model(there, of_ranks); }); }, [&] { return many(by_hand); });
    const Matrix found = fanout::to_host(model(there, of_ranks)), wanted = fanout::to_host(layers[2]);
    for (std::size_t i = 0; i < found.size(); ++i) {
      right = right && std::abs(found.data()[i] - wanted.data()[i]) <= 1e-3F * std::max(1.0F, wanted.data()[i]);
    }
  }
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  if (!json.empty()) comparisons.write_json(json, cuda::device_name(0));
  if (!right) std::printf("FAULT: the model's results are not those by hand\n");
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
