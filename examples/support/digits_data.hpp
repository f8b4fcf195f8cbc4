// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>

#include "csv.hpp"

namespace examples {

/// Handwritten digits: the pixels of each, from 0 to 1, and what it is.
struct Digits {
  static constexpr std::size_t pixel_count = 64;
  static constexpr std::size_t kinds = 10;
  static constexpr std::size_t test_rows = 297;  ///< at the end; all before are for training

  fanout::Tensor<double, 2> pixels;  ///< [rows, pixel_count]
  std::vector<int> labels;           ///< [rows], each from 0 to 9

  std::size_t rows() const { return labels.size(); }
  std::size_t train_rows() const { return rows() - test_rows; }
};

/// The digits to train on, as samples for a loader. Borrows them.
struct TrainingDigits {
  const Digits* digits;

  std::size_t size() const { return digits->train_rows(); }
  std::pair<fanout::View<const double, 1>, int> operator[](std::size_t i) const {
    return {digits->pixels.row(i), digits->labels[i]};
  }
};

/// Throws CsvError, also for a file that leaves no rows to train on.
inline Digits read_digits(const std::string& path) {
  std::vector<Column> columns(Digits::pixel_count, Column{.least = 0, .most = 16});
  columns.push_back({.least = 0, .most = 9});
  const auto lines = read_csv(path, columns);
  if (lines.size() <= Digits::test_rows) {
    detail::refuse_csv("too few lines", path,
                       "more than the " + std::to_string(Digits::test_rows) + " that are kept for the test",
                       std::to_string(lines.size()));
  }
  Digits digits{fanout::Tensor<double, 2>(lines.size(), Digits::pixel_count), {}};
  for (const auto& line : lines) {
    for (double* pixel = digits.pixels.row(digits.rows()).data();
         const int value : std::span<const int>(line).first(Digits::pixel_count)) {
      *pixel++ = value / 16.0;
    }
    digits.labels.push_back(line.back());
  }
  return digits;
}

}  // namespace examples
