// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What it costs to read and write elements one by one, at -O2: y += 2 x over a matrix, by index. Case elements;
// contenders are the ways to reach an element:
// tensor  x(i, j) of a Tensor
// row     x[i][j] of a Tensor
// view    x(i, j) of a View
// span    x[i * columns + j] of a std::span
// raw     the same of a pointer
//
// Each kind of access alternates with the pointer in one process. over_raw is the median ratio of neighbouring sweeps.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fanout/array/tensor.hpp>

#include <harness/load.hpp>
#include <harness/samples.hpp>
#include <harness/slice.hpp>
#include <harness/ticks.hpp>

namespace {

using fanout::Tensor;
using fanout::View;

[[gnu::noinline]] void sweep_raw(const double* x, double* y, std::size_t rows, std::size_t columns) {
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) y[i * columns + j] += 2 * x[i * columns + j];
  }
}

[[gnu::noinline]] void sweep_span(std::span<const double> x, std::span<double> y, std::size_t rows,
                                  std::size_t columns) {
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) y[i * columns + j] += 2 * x[i * columns + j];
  }
}

[[gnu::noinline]] void sweep_view(View<const double, 2> x, View<double, 2> y) {
  for (std::size_t i = 0; i < x.extent(0); ++i) {
    for (std::size_t j = 0; j < x.extent(1); ++j) y(i, j) += 2 * x(i, j);
  }
}

[[gnu::noinline]] void sweep_tensor(const Tensor<double, 2>& x, Tensor<double, 2>& y) {
  for (std::size_t i = 0; i < x.extent(0); ++i) {
    for (std::size_t j = 0; j < x.extent(1); ++j) y(i, j) += 2 * x(i, j);
  }
}

[[gnu::noinline]] void sweep_rows(const Tensor<double, 2>& x, Tensor<double, 2>& y) {
  for (std::size_t i = 0; i < x.extent(0); ++i) {
    for (std::size_t j = 0; j < x.extent(1); ++j) y[i][j] += 2 * x[i][j];
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment();
  if (slice.name() != "elements") slice.fault("no case " + slice.name());
  const auto size = static_cast<std::size_t>(slice.number("size", 100));
  slice.all_keys_read();
  const auto x = Tensor<double, 2>::full({size, size}, 1);
  Tensor<double, 2> y({size, size});
  slice.pin_caller();

  const auto compare = [&](const auto& sweep) {
    const auto ticks_of = [](const auto& call) {
      const std::int64_t begin = benchmarks::ticks();
      call();
      return benchmarks::ticks() - begin;
    };
    const auto raw = [&] { sweep_raw(x.data(), y.data(), size, size); };
    benchmarks::Samples samples;
    std::vector<double> ratios;
    const benchmarks::TickRate rate;
    const benchmarks::Load load;
    const std::int64_t end = benchmarks::nanoseconds() + static_cast<std::int64_t>(slice.seconds() * 1e9);
    double sweeps = 0;
    do {
      const std::int64_t before = ticks_of(raw);
      const std::int64_t ours = ticks_of(sweep);
      samples.add(ours);
      ratios.push_back(static_cast<double>(ours) / static_cast<double>(before));
      sweeps += 2;
    } while (benchmarks::nanoseconds() < end);
    if (y(size - 1, size - 1) != 2 * sweeps) slice.fault("a wrong sum");
    std::sort(ratios.begin(), ratios.end());
    auto report = slice.report(samples, load, rate);
    report.set("over_raw", benchmarks::quantile(ratios, 0.5));
    report.set("over_raw_p10", benchmarks::quantile(ratios, 0.1));
    report.set("over_raw_p90", benchmarks::quantile(ratios, 0.9));
    report.print();
  };

  const std::string& way = slice.contender();
  if (way == "raw") {
    compare([&] { sweep_raw(x.data(), y.data(), size, size); });
  } else if (way == "span") {
    compare([&] { sweep_span(x.values(), y.values(), size, size); });
  } else if (way == "view") {
    compare([&] { sweep_view(x, y); });
  } else if (way == "tensor") {
    compare([&] { sweep_tensor(x, y); });
  } else if (way == "row") {
    compare([&] { sweep_rows(x, y); });
  } else {
    slice.fault("no contender " + way);
  }
}
