// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <work/mlp.hpp>

namespace benchmarks {

namespace {

/// Uniform in [-1, 1), the same everywhere.
Floats noise(std::size_t size, std::uint64_t seed, float scale) {
  Floats values(size);
  for (float& value : values) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    value = scale * (static_cast<float>(seed >> 40U) * 0x1p-23F - 1.0F);
  }
  return values;
}

/// The columns of a row are added up side by side, each in double precision.
Floats one_layer(const Floats& x, const Floats& weights, const Floats& bias) {
  const std::size_t width = bias.size();
  Floats y(x.size());
  std::vector<double> sums(width);
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    sums.assign(bias.begin(), bias.end());
    for (std::size_t k = 0; k < width; ++k) {
      const double factor = static_cast<double>(x[row * width + k]);
      for (std::size_t j = 0; j < width; ++j) sums[j] += factor * static_cast<double>(weights[k * width + j]);
    }
    for (std::size_t j = 0; j < width; ++j) y[row * width + j] = static_cast<float>(sums[j] > 0 ? sums[j] : 0);
  }
  return y;
}

/// Rows that results are looked at in: all of them would take longer than what is measured.
std::size_t row_step(std::size_t rows) { return rows < 16 ? 1 : rows / 16; }

}  // namespace

Mlp::Mlp(std::size_t row_count, std::size_t features) : rows(row_count), width(features) {
  const float scale = std::sqrt(6.0F / static_cast<float>(width));  // so that the layers keep the size of what goes in
  for (std::size_t layer = 0; layer < layers; ++layer) {
    weights[layer] = noise(width * width, layer + 1, scale);
    bias[layer] = noise(width, layer + 11, 0.1F);
  }
  input = noise(rows * width, 21, 1);
  for (std::size_t row = 0; row < rows; row += row_step(rows)) {
    expected.insert(expected.end(), input.begin() + static_cast<std::ptrdiff_t>(row * width),
                    input.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
  }
  for (std::size_t layer = 0; layer < layers; ++layer) expected = one_layer(expected, weights[layer], bias[layer]);
}

void Mlp::check(const Slice& slice, const float* results) const {
  double squares = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double wanted = static_cast<double>(expected[i]);
    const double found = static_cast<double>(results[i / width * row_step(rows) * width + i % width]);
    squares += wanted * wanted;
    difference = std::max(difference, std::abs(wanted - found));
  }
  const double size = std::sqrt(squares / static_cast<double>(expected.size()));
  if (!(size > 0.01) || !(difference < 1e-4 * size * static_cast<double>(width))) slice.fault("wrong results");
}

void bias_relu(float* y, std::size_t stride, std::size_t rows, std::size_t columns, const float* bias) noexcept {
  for (std::size_t row = 0; row < rows; ++row) {
    float* const values = y + row * stride;
    for (std::size_t column = 0; column < columns; ++column) {
      const float value = values[column] + bias[column];
      values[column] = value > 0 ? value : 0;
    }
  }
}

}  // namespace benchmarks
