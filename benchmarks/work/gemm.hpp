// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>

#include <cblas.h>

#include <work/mlp.hpp>

namespace benchmarks {

/// A layer for some rows: y = relu(x w + b), where w are `columns` columns of the weights, whose rows stand `stride`
/// apart as those of y do.
inline void one_layer(const float* x, std::size_t rows, std::size_t inputs, const float* w, const float* b,
                      std::size_t columns, std::size_t stride, float* y) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(rows), static_cast<blasint>(columns),
              static_cast<blasint>(inputs), 1, x, static_cast<blasint>(inputs), w, static_cast<blasint>(stride), 0, y,
              static_cast<blasint>(stride));
  bias_relu(y, stride, rows, columns, b);
}

/// The whole network for some rows, a block of them at a time through all layers: what one layer makes of a small block
/// is in the cache when the next one takes it, and OpenBLAS multiplies matrices of up to a million products as they
/// are, where it first packs larger ones. `between` has room for a block.
template <class Weights, class Bias>
void run_layers(const float* x, std::size_t rows, std::size_t width, std::size_t block, const Weights& weights,
                const Bias& bias, float* between, float* y) {
  for (std::size_t row = 0; row < rows; row += block) {
    const std::size_t here = std::min(block, rows - row);
    float* const out = y + row * width;
    one_layer(x + row * width, here, width, weights[0].data(), bias[0].data(), width, width, out);
    one_layer(out, here, width, weights[1].data(), bias[1].data(), width, width, between);
    one_layer(between, here, width, weights[2].data(), bias[2].data(), width, width, out);
  }
}

}  // namespace benchmarks
