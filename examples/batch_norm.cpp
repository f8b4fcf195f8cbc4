// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model that learns while it runs: a batch norm keeps running statistics of the columns that it has seen. Each device
// has a replica that sees its own rows only; after each call the replicas' statistics are combined, and the original
// and all replicas go on from the same ones. At the end they are those that one device would have.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fanout/fanout.hpp>

struct BatchNorm {
  // [fields]
  fanout::Tensor<double, 1> scale;                      // as in every model: changed by update() alone
  fanout::Mean<fanout::Tensor<double, 1>> mean;         // combined after each call, weighted by rows
  fanout::Mean<fanout::Tensor<double, 1>> mean_square;  // and so is this
  fanout::Sum<long> rows_seen;                          // what each replica counted is added up
  // [/fields]

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> x) {
    auto y = fanout::output<double>(ctx, x.extent(1));
    if (x.extent(0) == 0) return y;
    for (std::size_t column = 0; column < x.extent(1); ++column) {
      const double center = mean.value[column];
      const double deviation = std::sqrt(mean_square.value[column] - center * center);
      double sum = 0;
      double squares = 0;
      for (std::size_t row = 0; row < x.extent(0); ++row) {
        y(row, column) = scale[column] * (x(row, column) - center) / deviation;
        sum += x(row, column);
        squares += x(row, column) * x(row, column);
      }
      const auto rows = static_cast<double>(x.extent(0));
      mean.value[column] += momentum * (sum / rows - mean.value[column]);
      mean_square.value[column] += momentum * (squares / rows - mean_square.value[column]);
    }
    rows_seen.value += static_cast<long>(x.extent(0));
    return y;
  }

  static constexpr double momentum = 0.25;
};

constexpr std::size_t columns = 3;

fanout::Tensor<double, 1> filled(double value) {
  fanout::Tensor<double, 1> tensor(columns);
  std::fill(tensor.begin(), tensor.end(), value);
  return tensor;
}

fanout::Tensor<double, 2> make_batch(std::size_t number) {
  fanout::Tensor<double, 2> x(20 + 7 * number, columns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x.data()[i] = static_cast<double>(i % columns) + std::sin(static_cast<double>(i * (number + 1)));
  }
  return x;
}

template <class Values>
double largest_difference(const Values& a, const Values& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.data()[i] - b.data()[i]));
  return largest;
}

int main() {
  const BatchNorm start{.scale = filled(1), .mean = filled(0), .mean_square = filled(1), .rows_seen = 0};
  const fanout::ParallelModel parallel{start, fanout::host_devices(3)};
  const fanout::ParallelModel serial{start, fanout::host_devices(1)};

  double difference = 0;
  for (std::size_t number = 0; number < 8; ++number) {
    const fanout::Tensor<double, 2> x = make_batch(number);
    difference = std::max(difference, largest_difference(parallel(x), serial(x)));
    const BatchNorm& norm = parallel.model();
    std::printf("%4ld rows seen, means %.3f %.3f %.3f\n", norm.rows_seen.value, norm.mean.value[0], norm.mean.value[1],
                norm.mean.value[2]);
  }
  for (std::size_t i = 0; i < parallel.devices().size(); ++i) {
    const BatchNorm& replica = parallel.replica(i).model();
    difference = std::max(difference, largest_difference(replica.mean.value, serial.model().mean.value));
    difference = std::max(difference, largest_difference(replica.mean_square.value, serial.model().mean_square.value));
  }
  std::printf("on one device: %ld rows seen, outputs and statistics %s\n", serial.model().rows_seen.value,
              difference < 1e-12 ? "the same" : "others");
  return difference < 1e-12 ? 0 : 1;
}
