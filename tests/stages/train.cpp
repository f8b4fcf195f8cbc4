// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>

namespace {

using fanout::Context;
using fanout::host_devices;
using fanout::output;
using fanout::ParallelModel;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::psum;
using fanout::saved;
using fanout::stage;
using fanout::Tensor;
using fanout::View;

using Rows = View<const double, 2>;
using Matrix = Tensor<double, 2>;

/// y = x . weight^T
struct Linear {
  Matrix weight;  // [out, in]

  auto forward(Context auto& ctx, Rows x) const {
    auto y = output<double>(ctx, weight.extent(0));
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t o = 0; o < weight.extent(0); ++o) {
        y(row, o) = 0;
        for (std::size_t i = 0; i < weight.extent(1); ++i) y(row, o) += weight(o, i) * x(row, i);
      }
    }
    return saved(y, x);
  }
  auto backward(Context auto& ctx, const auto& x, const auto& dy) const {
    auto dx = output<double>(ctx, weight.extent(1));
    Matrix gradient(weight.extents());
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t i = 0; i < weight.extent(1); ++i) {
        dx(row, i) = 0;
        for (std::size_t o = 0; o < weight.extent(0); ++o) {
          dx(row, i) += weight(o, i) * dy(row, o);
          gradient(o, i) += dy(row, o) * x(row, i);
        }
      }
    }
    return std::pair{dx, psum(std::move(gradient))};
  }
};

/// y = x^2, without parameters.
struct Square {
  auto forward(Context auto& ctx, Rows x) const {
    auto y = output<double>(ctx, x.extent(1));
    for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[i] * x.data()[i];
    return saved(y, x);
  }
  auto backward(Context auto& ctx, const auto& x, const auto& dy) const {
    auto dx = output<double>(ctx, x.extent(1));
    for (std::size_t i = 0; i < x.size(); ++i) dx.data()[i] = 2 * x.data()[i] * dy.data()[i];
    return std::pair{dx, psum(0)};
  }
};

/// Half the squared distance to the targets, summed over rows.
const auto distance = [](const auto& y, View<const double, 1> targets) {
  double sum = 0;
  Matrix dy(y.extents());
  for (std::size_t row = 0; row < y.extent(0); ++row) {
    for (std::size_t i = 0; i < y.extent(1); ++i) {
      dy(row, i) = y(row, i) - targets(row);
      sum += dy(row, i) * dy(row, i) / 2;
    }
  }
  return std::pair{psum(sum), std::move(dy)};
};

Matrix whole_numbers(std::size_t rows, std::size_t columns, int from) {
  Matrix made({rows, columns});
  for (std::size_t i = 0; i < made.size(); ++i) made.data()[i] = (static_cast<int>(i) * 7 + from) % 5 - 2;
  return made;
}

/// The loss of the stages called one after the other, for numerical gradients.
double loss_of(const Linear& first, const Linear& last, const Matrix& x, const Tensor<double, 1>& targets) {
  const ParallelModel a{first, host_devices(1)};
  const ParallelModel b{Square{}, host_devices(1)};
  const ParallelModel c{last, host_devices(1)};
  return distance(c(b(a(x))), targets).first.value;
}

template <class A, class B, class C>
void check_training(std::size_t rows, std::size_t micro_batches, const A& a, const B& b, const C& c) {
  CAPTURE(rows);
  CAPTURE(micro_batches);
  Linear first{whole_numbers(3, 2, 1)};
  Linear last{whole_numbers(2, 3, 3)};
  const Matrix x = whole_numbers(rows, 2, 2);
  Tensor<double, 1> targets(rows);
  for (std::size_t i = 0; i < rows; ++i) targets(i) = static_cast<double>(i % 3);
  const Pipeline net{PipelineOptions{.micro_batches = micro_batches}, stage(first, a), stage(Square{}, b), stage(last, c)};
  const auto [loss, gradients] = net.train(x, targets, distance);
  CHECK(loss == loss_of(first, last, x, targets));  // whole numbers: exact in any order
  const auto check_gradient = [&](Matrix& weight, const Matrix& gradient) {
    REQUIRE(gradient.extents() == weight.extents());
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double at = weight.data()[i];
      const double step = 1e-4;
      weight.data()[i] = at + step;
      const double above = loss_of(first, last, x, targets);
      weight.data()[i] = at - step;
      const double below = loss_of(first, last, x, targets);
      weight.data()[i] = at;
      CHECK(gradient.data()[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6).scale(1));
    }
  };
  check_gradient(first.weight, std::get<0>(gradients));
  CHECK(std::get<1>(gradients) == 0);
  check_gradient(last.weight, std::get<2>(gradients));
}

}  // namespace

TEST_CASE("training gives the loss and the gradients of the whole model") {
  check_training(7, 1, host_devices(1), host_devices(1), host_devices(1));
  check_training(7, 3, host_devices(1), host_devices(2), host_devices(1));
  check_training(10, 4, host_devices(2), host_devices(3), host_devices(2));
  check_training(3, 8, host_devices(2), host_devices(1), host_devices(1));
  const auto simulated = fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(2));
  check_training(9, 4, simulated, host_devices(1), simulated);
}
