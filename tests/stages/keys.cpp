// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that skip stages in training.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>

#include "support/message_of.hpp"

namespace {

using namespace fanout::literals;
using fanout::Context;
using fanout::DeviceSet;
using fanout::dict;
using fanout::host_devices;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::psum;
using fanout::saved;
using fanout::stage;
using fanout::Tensor;
using fanout::View;

using Numbers = View<const double, 1>;
using Vector = Tensor<double, 1>;

Vector times(double scale, Numbers x) {
  Vector y(x.extent(0));
  for (std::size_t i = 0; i < y.size(); ++i) y(i) = scale * x(i);
  return y;
}
double dot(Numbers x, Numbers y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x(i) * y(i);
  return sum;
}

/// x -> {a: p x, b: q x}
struct Fork {
  double p = 2;
  double q = 3;

  auto forward(Numbers x) const { return saved(dict("a"_k = times(p, x), "b"_k = times(q, x)), Vector(x)); }
  auto backward(const auto& x, const auto& dy) const {
    Vector dx(x.extent(0));
    for (std::size_t i = 0; i < dx.size(); ++i) dx(i) = p * dy["a"_k](i) + q * dy["b"_k](i);
    return std::pair{std::move(dx), std::tuple{psum(dot(dy["a"_k], x)), psum(dot(dy["b"_k], x))}};
  }
};

/// a -> {a: s a^2}. It takes one key, so its dx needs no dict.
struct Square {
  double s = 1;

  auto forward(Numbers a) const {
    Vector y(a.extent(0));
    for (std::size_t i = 0; i < y.size(); ++i) y(i) = s * a(i) * a(i);
    return saved(dict("a"_k = std::move(y)), Vector(a));
  }
  auto backward(const auto& a, const auto& dy) const {
    Vector da(a.extent(0));
    double ds = 0;
    for (std::size_t i = 0; i < da.size(); ++i) {
      da(i) = 2 * s * a(i) * dy["a"_k](i);
      ds += a(i) * a(i) * dy["a"_k](i);
    }
    return std::pair{std::move(da), psum(ds)};
  }
};

/// (a, b) -> {c: a b}
struct Product {
  auto forward(Numbers a, Numbers b) const {
    Vector y(a.extent(0));
    for (std::size_t i = 0; i < y.size(); ++i) y(i) = a(i) * b(i);
    return saved(dict("c"_k = std::move(y)), std::pair{Vector(a), Vector(b)});
  }
  auto backward(const auto& state, const auto& dy) const {
    const auto& [a, b] = state;
    auto dx = dict("a"_k = Vector(a.extent(0)), "b"_k = Vector(a.extent(0)));
    for (std::size_t i = 0; i < a.extent(0); ++i) {
      dx["a"_k](i) = b(i) * dy["c"_k](i);
      dx["b"_k](i) = a(i) * dy["c"_k](i);
    }
    return std::pair{std::move(dx), psum(0)};
  }
};

/// (c, b) -> r c + b. Product takes b, too.
struct Sum {
  double r = 0.5;

  auto forward(Numbers c, Numbers b) const {
    Vector y(c.extent(0));
    for (std::size_t i = 0; i < y.size(); ++i) y(i) = r * c(i) + b(i);
    return saved(std::move(y), Vector(c));
  }
  auto backward(const auto& c, const auto& dy) const {
    return std::pair{dict("b"_k = Vector(dy), "c"_k = times(r, dy)), psum(dot(dy, c))};
  }
};

struct Whole {
  auto forward(const auto& x) const { return saved(dict("w"_k = times(5, x["a"_k])), 0); }
  auto backward(int, const auto& dy) const {
    return std::pair{dict("a"_k = times(5, dy["w"_k]), "b"_k = times(0, dy["w"_k])), psum(0)};
  }
};

struct Last {
  auto forward(Numbers w, Numbers a) const {
    Vector y(w);
    for (std::size_t i = 0; i < y.size(); ++i) y(i) += a(i);
    return saved(std::move(y), 0);
  }
  auto backward(int, const auto& dy) const {
    return std::pair{dict("w"_k = Vector(dy), "a"_k = times(1, dy)), psum(0)};
  }
};

struct First {
  double p = 3;
  auto forward(Numbers twice) const { return saved(dict("a"_k = times(p, twice)), Vector(twice)); }
  auto backward(const auto& twice, const auto& dy) const { return std::pair{0, psum(dot(dy["a"_k], twice))}; }
};

struct Second {
  auto forward(Numbers raw, Numbers a) const {
    Vector y(raw);
    for (std::size_t i = 0; i < y.size(); ++i) y(i) += a(i);
    return saved(std::move(y), 0);
  }
  auto backward(int, const auto& dy) const { return std::pair{dict("a"_k = Vector(dy)), psum(0)}; }
};

struct MakeA {
  auto forward(Numbers x) const { return saved(dict("a"_k = Vector(x)), 0); }
  auto backward(int, const auto& dy) const { return std::pair{0, psum(dy["a"_k].size())}; }
};
struct LastA {
  auto forward(Numbers a) const { return saved(Vector(a), 0); }
  auto backward(int, const auto& dy) const { return std::pair{Vector(dy), psum(0)}; }
};
struct Make {
  auto forward(Numbers x) const { return saved(dict("b"_k = Vector(x)), 0); }
  auto backward(int, const auto& dy) const { return std::pair{0, psum(dy["b"_k].size())}; }
};

/// Its dx lacks a row.
struct Short {
  auto forward(Numbers b) const { return saved(dict("c"_k = Vector(b)), 0); }
  auto backward(int, const auto& dy) const {
    Vector dx(dy["c"_k].extent(0) - 1);
    return std::pair{std::move(dx), psum(0)};
  }
};

/// Half the squared distance to the targets.
const auto distance = [](Numbers y, Numbers targets) {
  Vector dy(y.extent(0));
  for (std::size_t i = 0; i < dy.size(); ++i) dy(i) = y(i) - targets(i);
  const double loss = dot(dy, dy) / 2;
  return std::pair{psum(loss), std::move(dy)};
};

Vector small(std::size_t n, int from) {
  Vector x(n);
  for (std::size_t i = 0; i < n; ++i) x(i) = (static_cast<int>(i) * 3 + from) % 4 - 1;
  return x;
}

/// The loss is exact, since all numbers are multiples of 1/64 that are not large.
double loss_of(const Fork& fork, double s, double r, Numbers x, Numbers targets) {
  double loss = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = s * fork.p * x(i) * fork.p * x(i);
    const double b = fork.q * x(i);
    const double d = r * a * b + b - targets(i);
    loss += d * d / 2;
  }
  return loss;
}

template <class A, class B, class C, class D>
auto skipping(const PipelineOptions& options, const A& a, const B& b, const C& c, const D& d) {
  return Pipeline{options, stage(Fork{}, a), stage(Square{}, b).takes("a"_k), stage(Product{}, c).takes("a"_k, "b"_k),
                  stage(Sum{}, d).takes("c"_k, "b"_k)};
}

template <class... Devices>
void check_gradients(std::size_t rows, const PipelineOptions& options, const Devices&... devices) {
  CAPTURE(rows);
  const auto net = skipping(options, devices...);
  const Vector x = small(rows, 1);
  const Vector targets = small(rows, 2);
  const auto [loss, gradients] = net.train(x, targets, distance);
  CHECK(loss == loss_of({}, 1, 0.5, x, targets));
  const auto slope = [&](const auto& at) { return (at(1.0 / 64) - at(-1.0 / 64)) * 32; };
  const auto near = [](double value) { return doctest::Approx(value).epsilon(2e-3); };
  const auto& [dp, dq] = std::get<0>(gradients);
  CHECK(dp == near(slope([&](double by) { return loss_of({2 + by, 3}, 1, 0.5, x, targets); })));
  CHECK(dq == near(slope([&](double by) { return loss_of({2, 3 + by}, 1, 0.5, x, targets); })));
  CHECK(std::get<1>(gradients) == near(slope([&](double by) { return loss_of({}, 1 + by, 0.5, x, targets); })));
  CHECK(std::get<3>(gradients) == near(slope([&](double by) { return loss_of({}, 1, 0.5 + by, x, targets); })));
}

}  // namespace

TEST_CASE("gradients come back through keys, and those of a shared key are added") {
  const auto one = host_devices(1);
  check_gradients(9, {.micro_batches = 3}, one, one, one, one);
  check_gradients(9, {.micro_batches = 4}, host_devices(2), one, host_devices(3), host_devices(2));
  check_gradients(2, {.micro_batches = 5}, one, host_devices(2), one, one);
  const auto simulated = fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(4));
  const auto at = [&](std::size_t i) { return DeviceSet<fanout::SimulatedDevice>({simulated[i]}); };
  check_gradients(9, {.micro_batches = 4}, at(0), at(1), at(2), at(3));
  check_gradients(9, {.micro_batches = 4}, at(0), one, at(1), simulated);
}

TEST_CASE("with keys, all schedules give the same bits") {
  const auto one = host_devices(1);
  Vector x(11);
  for (std::size_t i = 0; i < x.size(); ++i) x(i) = 1.0 / static_cast<double>(i + 3);
  const auto train = [&](const PipelineOptions& options) {
    return skipping(options, one, one, one, one).train(x, x, distance);
  };
  const auto wanted = train({.micro_batches = 4});
  CHECK(train({.micro_batches = 4, .schedule = fanout::GPipe{}}) == wanted);
  CHECK(train({.micro_batches = 4, .schedule = fanout::Interleaved{}}) == wanted);
}

TEST_CASE("a stage may take a key of the one before the last, and the next one all of it") {
  const Pipeline net{PipelineOptions{.micro_batches = 2}, stage(Fork{2, 3}, host_devices(1)),
                     stage(Whole{}, host_devices(1)), stage(Last{}, host_devices(1)).takes("w"_k, "a"_k)};
  const Vector x = small(4, 1);  // 0, 3 - 1 = 2, ...
  const auto [loss, gradients] = net.train(x, Vector(4), distance);
  // y = 6 p x
  CHECK(loss == 144 * dot(x, x) / 2);
  CHECK(std::get<0>(std::get<0>(gradients)) == 12 * 6 * dot(x, x));
  CHECK(std::get<1>(std::get<0>(gradients)) == 0);
}

TEST_CASE("a key may be made and taken by each stage in turn") {
  const auto square = [] { return stage(Square{}, host_devices(1)).takes("a"_k); };
  const Pipeline net{PipelineOptions{.micro_batches = 3}, stage(MakeA{}, host_devices(1)), square(), square(),
                     stage(LastA{}, host_devices(1)).takes("a"_k)};
  const Vector x = small(5, 0);
  const auto [loss, gradients] = net.train(x, Vector(5), distance);
  // y = s2 (s1 x^2)^2, and its gradient by s1 is 2 y. x is -1, 0, 1 or 2.
  double wanted_loss = 0;
  double wanted = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double y = x(i) * x(i) * x(i) * x(i);
    wanted_loss += y * y / 2;
    wanted += y * y;
  }
  CHECK(loss == wanted_loss);
  CHECK(std::get<1>(gradients) == 2 * wanted);
  CHECK(std::get<2>(gradients) == wanted);
}

TEST_CASE("keys of a stage that goes forward only need no dx") {
  const auto prepare = [](Numbers x) { return dict("raw"_k = Vector(x), "twice"_k = times(2, x)); };
  const Pipeline net{PipelineOptions{.micro_batches = 2}, stage(prepare, host_devices(1)),
                     stage(First{}, host_devices(2)).takes("twice"_k),
                     stage(Second{}, host_devices(1)).takes("raw"_k, "a"_k)};
  const Vector x = small(5, 0);
  const auto [loss, gradients] = net.train(x, Vector(5), distance);
  CHECK(loss == 49 * dot(x, x) / 2);
  CHECK(std::get<0>(gradients) == fanout::no_gradients);
  CHECK(std::get<1>(gradients) == 7 * 2 * dot(x, x));
}

TEST_CASE("a stage under keys may be recomputed") {
  const auto one = host_devices(1);
  const Vector x = small(7, 1);
  const auto wanted = skipping({.micro_batches = 3}, one, one, one, one).train(x, x, distance);
  const Pipeline net{PipelineOptions{.micro_batches = 3}, stage(fanout::recompute(Fork{}), one),
                     stage(Square{}, one).takes("a"_k), stage(fanout::recompute(Product{}), one).takes("a"_k, "b"_k),
                     stage(Sum{}, one).takes("c"_k, "b"_k)};
  CHECK(net.train(x, x, distance) == wanted);
}

TEST_CASE("dx of two stages for one key with other extents is an error that names the key") {
  const auto net =
      Pipeline{PipelineOptions{.micro_batches = 2}, stage(Make{}, host_devices(1)),
               stage(Short{}, host_devices(1)).takes("b"_k), stage(Sum{}, host_devices(1)).takes("c"_k, "b"_k)};
  const Vector x = small(6, 1);
  const std::string said = fanout_test::message_of<fanout::StageError>([&] { (void)net.train(x, x, distance); });
  CAPTURE(said);
  CHECK(fanout_test::says(said, "stage 0 failed on micro-batch 0"));
  CHECK(fanout_test::says(said, "different extents at dx.b"));
}
