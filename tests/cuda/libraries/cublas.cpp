// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a model uses a library with a handle for each GPU. It is compiled only: cuBLAS needs a GPU.
#include <cstddef>
#include <stdexcept>
#include <utility>

#include <cublas_v2.h>
#include <fanout/cuda.hpp>

namespace {

// [cublas]
void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
}

/// y = x * weight, on one GPU. Not copied: the handle is of this GPU.
class Multiply {
 public:
  Multiply(const fanout::Tensor<float, 2>& weight, const fanout::CudaDevice& device)
      : weight_(fanout::to(weight, device)) {
    check(cublasCreate(&handle_));  // on the current device, which is that of the factory
  }
  Multiply(const Multiply&) = delete;
  Multiply& operator=(const Multiply&) = delete;
  ~Multiply() { cublasDestroy(handle_); }

  // Not const: a handle is used by one call at a time.
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) {
    auto y = fanout::output<float>(ctx, weight_.extent(1));
    check(cublasSetStream(handle_, ctx.stream().get()));
    const int rows = static_cast<int>(x.extent(0)), inner = static_cast<int>(x.extent(1));
    const int columns = static_cast<int>(weight_.extent(1));
    const float one = 1, zero = 0;  // cuBLAS counts by columns, so it multiplies the transposed matrices
    check(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, inner, &one, weight_.data(), columns, x.data(),
                      inner, &zero, y.data(), columns));
    return y;
  }

 private:
  fanout::Tensor<float, 2> weight_;
  cublasHandle_t handle_ = nullptr;
};
// [/cublas]

}  // namespace

// [cublas_use]
fanout::Tensor<float, 2> multiply(const fanout::Tensor<float, 2>& x, const fanout::Tensor<float, 2>& weight) {
  const auto make = [&weight](const fanout::CudaDevice& device) { return Multiply(weight, device); };
  const fanout::ParallelModel model{fanout::factory(make), fanout::cuda_devices()};
  return model(x);
}
// [/cublas_use]
