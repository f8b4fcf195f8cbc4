// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/plan/dealt_split.hpp>
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
  const Pipeline net{PipelineOptions{.micro_batches = micro_batches}, stage(first, a), stage(Square{}, b),
                     stage(last, c)};
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

namespace {

Matrix fractions(std::size_t rows, std::size_t columns) {
  Matrix made({rows, columns});
  for (std::size_t i = 0; i < made.size(); ++i) made.data()[i] = 1.0 / static_cast<double>(i % 7 + 3);
  return made;
}

/// A layer with random numbers of its rows.
struct Dropout {
  auto forward(Context auto& ctx, Rows x) const {
    auto y = output<double>(ctx, x.extent(1));
    Matrix kept({x.extent(0), x.extent(1)});
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      auto random = ctx.random(row);
      for (std::size_t i = 0; i < x.extent(1); ++i) {
        kept(row, i) = random.uniform() < 0.5 ? 0 : 2;
        y(row, i) = kept(row, i) * x(row, i);
      }
    }
    return saved(y, std::move(kept));
  }
  auto backward(Context auto& ctx, const auto& kept, const auto& dy) const {
    auto dx = output<double>(ctx, dy.extent(1));
    double sum = 0;
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dx.data()[i] = kept.data()[i] * dy.data()[i];
      sum += dx.data()[i];
    }
    return std::pair{dx, psum(sum)};
  }
};

}  // namespace

TEST_CASE("gradients have the bits of the stages called on the same micro-batches in order") {
  const Linear first{fractions(3, 2)};
  const Linear last{fractions(2, 3)};
  const Matrix x = fractions(11, 2);
  Tensor<double, 1> targets(11);
  const auto train = [&](const auto& a, const auto& b, const auto& c) {
    const Pipeline net{PipelineOptions{.micro_batches = 4}, stage(first, a), stage(Square{}, b), stage(last, c)};
    return net.train(x, targets, distance);
  };
  const auto [loss, gradients] = train(host_devices(1), host_devices(1), host_devices(1));

  double wanted_loss = 0;
  Matrix wanted;
  for (const auto& part : fanout::EvenSplit{}(11, 4)) {
    // A pipeline of one stage goes forward and back at once.
    const auto rows = Rows(x).rows(part.rows);
    const ParallelModel a{first, host_devices(1)};
    const ParallelModel b{Square{}, host_devices(1)};
    const Matrix in = b(a(rows));
    const Pipeline one{PipelineOptions{.micro_batches = 1}, stage(last, host_devices(1))};
    const auto [part_loss, part_gradients] = one.train(in, View<const double, 1>(targets).rows(part.rows), distance);
    wanted_loss += part_loss;
    const Matrix& gradient = std::get<0>(part_gradients);
    if (part.rows.first == 0) {
      wanted = gradient;
    } else {
      for (std::size_t i = 0; i < wanted.size(); ++i) wanted.data()[i] += gradient.data()[i];
    }
  }
  CHECK(loss == wanted_loss);
  const auto same = [](const Matrix& a, const Matrix& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
  CHECK(same(std::get<2>(gradients), wanted));
  for (int again = 0; again < 5; ++again) {
    const auto [other_loss, other] = train(host_devices(1), host_devices(1), host_devices(1));
    CHECK(other_loss == loss);
    CHECK(same(std::get<0>(other), std::get<0>(gradients)));
    CHECK(same(std::get<2>(other), std::get<2>(gradients)));
  }
  const auto [near_loss, near] = train(host_devices(2), host_devices(1), host_devices(3));
  CHECK(near_loss == doctest::Approx(loss));
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(std::get<0>(near).data()[i] == doctest::Approx(std::get<0>(gradients).data()[i]));
  }
}

TEST_CASE("recompute() runs forward again, with the same random numbers") {
  const Matrix x = fractions(9, 2);
  Tensor<double, 1> targets(9);
  const fanout::Options seeded{.seed = 3};
  const auto train = [&](auto dropout) {
    const Pipeline net{PipelineOptions{.micro_batches = 3}, stage(Linear{fractions(3, 2)}, host_devices(1)),
                       stage(std::move(dropout), host_devices(2), seeded),
                       stage(Linear{fractions(2, 3)}, host_devices(1))};
    return net.train(x, targets, distance);
  };
  const auto [loss, gradients] = train(Dropout{});
  const auto [again_loss, again] = train(fanout::recompute(Dropout{}));
  CHECK(loss == again_loss);
  CHECK(std::get<1>(gradients) == std::get<1>(again));
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::get<0>(gradients).data()[i] == std::get<0>(again).data()[i]);
}

TEST_CASE("an exception in training names the stage, and the next step works") {
  struct Breaks {
    bool* broken;
    auto forward(Rows x) const { return saved(Matrix(x), 0); }
    auto backward(int, View<const double, 2> dy) const {
      if (*broken) throw std::runtime_error("broken");
      return std::pair{Matrix(dy), psum(0)};
    }
  };
  bool broken = true;
  const Pipeline net{stage(Linear{fractions(3, 2)}, host_devices(1)), stage(Breaks{&broken}, host_devices(2)),
                     stage(Linear{fractions(2, 3)}, host_devices(1))};
  const Matrix x = fractions(9, 2);
  const Tensor<double, 1> targets(9);
  try {
    net.train(x, targets, distance);
    FAIL("it did not throw");
  } catch (const fanout::StageError& error) {
    CHECK(error.stage() == 1);
    CHECK(error.get_if<fanout::ReplicaError>()->get_if<std::runtime_error>() != nullptr);
  }
  broken = false;
  CHECK(net.train(x, targets, distance).first > 0);
  CHECK_THROWS_AS(net.train(x, Tensor<double, 1>(8), distance), fanout::ShapeMismatch);
}

TEST_CASE("outside of training, what saved() keeps is dropped") {
  const ParallelModel model{Linear{fractions(3, 2)}, host_devices(2)};
  const Matrix y = model(fractions(5, 2));
  CHECK(y.extents() == fanout::Extents<2>{5, 3});
}

TEST_CASE("a stage that is trained runs its shards on the devices that have their states") {
  const Matrix x = fractions(16, 2);
  const Tensor<double, 1> targets(16);
  const auto check_refused = [&](const fanout::Options& options, const char* name) {
    const Pipeline net{PipelineOptions{.micro_batches = 2}, stage(Square{}, host_devices(1)),
                       stage(Square{}, host_devices(2), options)};
    CHECK(net(x).size() == 32);
    CHECK_THROWS_WITH_AS(net.train(x, targets, distance), doctest::Contains(name), fanout::InvalidArgument);
    CHECK_THROWS_WITH_AS(net.train(x, targets, distance), doctest::Contains("stage 1"), fanout::InvalidArgument);
  };
  check_refused({.retry = {.times = 1}}, "Options::retry");
  check_refused({.shrink_on_out_of_memory = true}, "Options::shrink_on_out_of_memory");
  check_refused({.split = fanout::DealtSplit{}}, "which deals");
}

TEST_CASE("first stages that save nothing go forward only") {
  struct Prepare {
    Matrix forward(View<const double, 1> numbers) const {
      Matrix x({numbers.size(), 2});
      for (std::size_t row = 0; row < numbers.size(); ++row) x(row, 0) = x(row, 1) = numbers(row) / 4;
      return x;
    }
  };
  struct Shift {
    Matrix forward(Rows x) const {
      Matrix y(x);
      for (double& value : y) value += 1;
      return y;
    }
  };
  Tensor<double, 1> numbers(11);
  for (std::size_t i = 0; i < 11; ++i) numbers(i) = static_cast<double>(i % 4);
  const Tensor<double, 1> targets(11);
  const auto train = [&](const auto& schedule) {
    const Pipeline net{PipelineOptions{.micro_batches = 4, .schedule = schedule}, stage(Prepare{}, host_devices(2)),
                       stage(Shift{}, host_devices(1)), stage(Linear{whole_numbers(3, 2, 1)}, host_devices(2)),
                       stage(Square{}, host_devices(1))};
    return net.train(numbers, targets, distance);
  };
  const auto [loss, gradients] = train(fanout::OneForwardOneBackward{});
  CHECK(std::get<0>(gradients) == fanout::no_gradients);
  CHECK(std::get<1>(gradients) == fanout::no_gradients);

  const ParallelModel prepare{Prepare{}, host_devices(1)};
  const ParallelModel shift{Shift{}, host_devices(1)};
  const Matrix x = shift(prepare(numbers));
  const Pipeline alone{PipelineOptions{.micro_batches = 4}, stage(Linear{whole_numbers(3, 2, 1)}, host_devices(2)),
                       stage(Square{}, host_devices(1))};
  const auto [wanted, wanted_gradients] = alone.train(x, targets, distance);
  CHECK(loss == wanted);
  const auto same = [](const Matrix& a, const Matrix& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
  CHECK(same(std::get<2>(gradients), std::get<0>(wanted_gradients)));
  CHECK(train(fanout::GPipe{}).first == wanted);
}
