// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>

namespace {

using fanout::broadcast;
using fanout::Context;
using fanout::Options;
using fanout::output;
using fanout::ParallelModel;
using fanout::psum;
using fanout::Range;
using fanout::RowRange;
using fanout::Tensor;
using fanout::View;

// [pi]
/// Counts random points in a quarter of a circle.
struct Darts {
  auto forward(Context auto& ctx, RowRange points) const {
    long hits = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {  // counts from the shard's first row, as ctx.random does
      auto random = ctx.random(i);
      const double x = random.uniform();
      const double y = random.uniform();
      hits += x * x + y * y < 1 ? 1 : 0;
    }
    return psum(hits);
  }
};
// [/pi]

// [stencil]
/// One step of the heat equation on a rod: each point takes the mean of its neighbours.
struct Heat {
  auto forward(Context auto& ctx, View<const double, 1> rod, RowRange points) const {
    auto next = output<double>(ctx);
    for (const auto [local, global] : points.enumerate()) {
      const bool at_end = global == 0 || global + 1 == rod.size();
      next[local] = at_end ? rod[global] : (rod[global - 1] + rod[global + 1]) / 2;
    }
    return next;
  }
};
// [/stencil]

// [exchange]
/// The same for many steps: each shard keeps its points, and gets one point of each neighbour before a step.
struct Steps {
  int count;

  auto forward(Context auto& ctx, View<const double, 1> points) const {
    const std::size_t n = points.size();
    const bool first = ctx.rank() == 0;
    const bool last = ctx.rank() + 1 == ctx.size();
    auto now = fanout::empty<double>(ctx, n + 2);  // the points 1 to n are the shard's own
    auto next = fanout::empty<double>(ctx, n + 2);
    fanout::copy(points, now.rows({1, n + 1}));
    auto shards = ctx.communicator();
    for (int step = 0; step < count; ++step) {
      auto group = shards.group();
      if (!first) shards.send(now[1], ctx.rank() - 1);
      if (!first) shards.recv(now[0], ctx.rank() - 1);
      if (!last) shards.send(now[n], ctx.rank() + 1);
      if (!last) shards.recv(now[n + 1], ctx.rank() + 1);
      group.end();  // runs these calls, and waits for them
      for (std::size_t i = 1; i <= n; ++i) {
        const bool at_end = (first && i == 1) || (last && i == n);
        next[i] = at_end ? now[i] : (now[i - 1] + now[i + 1]) / 2;
      }
      std::swap(now, next);
    }
    auto result = output<double>(ctx);
    fanout::copy(now.rows({1, n + 1}), result);
    return result;
  }
};
// [/exchange]

// [member]
class Simulation {
 public:
  Simulation() : step_(Heat(), fanout::host_devices(2)) {}
  void run(Tensor<double, 1>& rod) { rod = step_(broadcast(rod), Range{rod.size()}); }

 private:
  ParallelModel<Heat, fanout::DeviceSet<fanout::HostDevice>> step_;
};
// [/member]

// [lambda]
inline auto make_doubler() {
  return ParallelModel{[](Context auto& ctx, View<const double, 1> x) {
                         auto y = output<double>(ctx);
                         for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
                         return y;
                       },
                       fanout::host_devices(2)};
}

class Doubling {
 public:
  Tensor<double, 1> operator()(const Tensor<double, 1>& x) const { return model_(x); }

 private:
  decltype(make_doubler()) model_ = make_doubler();
};
// [/lambda]

// [declared]
struct Damping {  // in a header
  double factor;
  Tensor<double, 1> forward(fanout::ShardContext<fanout::HostDevice>& ctx, View<const double, 1> x) const;
};
// [/declared]
Tensor<double, 1> Damping::forward(fanout::ShardContext<fanout::HostDevice>& ctx, View<const double, 1> x) const {
  auto y = output<double>(ctx);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
  return y;
}

// [counts]
using Counts = std::map<std::string, long>;

/// Counts equal words. Shards have different words.
struct WordCount {
  auto forward(std::span<const std::string> words) const {
    Counts counts;
    for (const std::string& word : words) ++counts[word];
    return fanout::reduce(std::move(counts), [](Counts all, const Counts& more) {
      for (const auto& [word, count] : more) all[word] += count;
      return all;
    });
  }
};
// [/counts]

bool is_prime(long number) {
  for (long d = 2; d < number; ++d) {
    if (number % d == 0) return false;
  }
  return number > 1;
}

// [spans]
/// A batch that borrows its vectors.
struct Batch {
  std::span<const double> x;
  std::span<const double> weight;
  double scale;  // goes to all shards
};

/// The scaled sum of all rows, weighted.
struct WeightedSum {
  auto forward(const Batch& rows) const {  // the shard's rows of both vectors
    double sum = 0;
    for (std::size_t i = 0; i < rows.x.size(); ++i) sum += rows.scale * rows.weight[i] * rows.x[i];
    return psum(sum);
  }
};
// [/spans]

// [learns]
/// A straight line, which learns to go through points.
struct Line {
  double slope = 0;
  double height = 0;

  auto forward(Context auto& ctx, View<const double, 1> x) const {  // what it predicts
    auto y = output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = height + slope * x[i];
    return y;
  }

  auto forward(View<const double, 1> x, View<const double, 1> y) const {  // the gradient of the mean square error
    double by_slope = 0;
    double by_height = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = height + slope * x[i] - y[i];
      by_slope += 2 * error * x[i];
      by_height += 2 * error;
    }
    const auto rows = static_cast<double>(x.size());
    return std::pair(fanout::pmean(by_slope / rows), fanout::pmean(by_height / rows));
  }
};
// [/learns]

// [stop]
struct Primes {
  std::vector<long> forward(Context auto& ctx, std::span<const long> numbers) const {
    std::vector<long> primes;
    for (const long number : numbers) {
      if (ctx.stop_requested()) break;  // this shard is late: what it returns is not used
      if (is_prime(number)) primes.push_back(number);
    }
    return primes;
  }
};
// [/stop]

struct Total {
  auto forward(View<const double, 1> x) const {
    double sum = 0;
    for (const double v : x) sum += v;
    return psum(sum);
  }
};

/// A class that lists its fields, as a template of the kind of its arrays.
template <template <class, std::size_t> class Array>
class Bodies {
 public:
  Bodies() = default;
  Bodies(Array<double, 1> place, Array<double, 1> mass) : place_(std::move(place)), mass_(std::move(mass)) {}
  const Array<double, 1>& place() const { return place_; }
  const Array<double, 1>& mass() const { return mass_; }

 private:
  friend constexpr auto fields(const Bodies*) {
    using namespace fanout::literals;
    return fanout::dict("place"_k = &Bodies::place_, "mass"_k = &Bodies::mass_);
  }

  Array<double, 1> place_;
  Array<double, 1> mass_;
};

}  // namespace

TEST_CASE("random numbers of rows do not depend on the number of devices") {
  // [use_pi]
  const ParallelModel darts{Darts(), Options{.seed = 7}};
  const double pi = 4.0 * static_cast<double>(darts(Range{100'000})) / 100'000;
  // [/use_pi]
  CHECK(std::abs(pi - 3.14159) < 0.05);
  const ParallelModel alone{Darts(), fanout::host_devices(1), Options{.seed = 7}};
  CHECK(4.0 * static_cast<double>(alone(Range{100'000})) / 100'000 == pi);
}

TEST_CASE("a stencil is passed the whole array and its rows") {
  Tensor<double, 1> rod(6);
  rod[5] = 32;
  // [use_stencil]
  const ParallelModel step{Heat(), fanout::host_devices(2)};
  for (int n = 0; n < 4; ++n) rod = step(broadcast(rod), Range{rod.size()});
  // [/use_stencil]
  CHECK(std::vector<double>(rod.begin(), rod.end()) == std::vector<double>{0, 2, 4, 12, 20, 32});
}

TEST_CASE("shards exchange the points at their ends and keep the others") {
  for (const int devices : {1, 2, 6}) {
    Tensor<double, 1> rod(6);
    rod[5] = 32;
    const ParallelModel four_steps{Steps{4}, fanout::host_devices(devices)};
    // [use_exchange]
    rod = four_steps(rod);
    // [/use_exchange]
    CHECK(std::vector<double>(rod.begin(), rod.end()) == std::vector<double>{0, 2, 4, 12, 20, 32});
  }
}

TEST_CASE("streams can be made outside of a call") {
  const ParallelModel model{[](Context auto& ctx, RowRange rows) {
                              auto x = output<double>(ctx);
                              for (std::size_t i = 0; i < rows.size(); ++i) x[i] = ctx.random(i).uniform();
                              return x;
                            },
                            fanout::host_devices(3), Options{.seed = 7}};
  const auto first = model(Range{10});
  const auto second = model(Range{10});
  CHECK(first[9] == fanout::RandomStream(7, 0, 9).uniform());
  CHECK(second[9] == fanout::RandomStream(7, 1, 9).uniform());
}

static_assert(std::is_same_v<decltype(ParallelModel{Heat()}), ParallelModel<Heat>>);
static_assert(std::is_same_v<decltype(ParallelModel{Heat(), fanout::host_devices(2)}),
                             ParallelModel<Heat, fanout::DeviceSet<fanout::HostDevice>>>);
static_assert(std::is_same_v<decltype(ParallelModel{Heat(), fanout::Indices<fanout::HostDevice, 0, 2>()}),
                             ParallelModel<Heat, fanout::Indices<fanout::HostDevice, 0, 2>>>);

TEST_CASE("a class has a model as a member, named by its type or by the function that makes it") {
  Tensor<double, 1> rod(3);
  rod[2] = 4;
  Simulation simulation;
  simulation.run(rod);
  CHECK(rod[1] == 2);
  const Doubling doubled;
  CHECK(doubled(rod)[1] == 4);
}

TEST_CASE("a forward in another file names the type of its context") {
  const ParallelModel damped{Damping{0.5}, fanout::host_devices(2)};
  CHECK(damped(fanout::tensor<double>({2.0, 4.0, 6.0})) == fanout::tensor<double>({1.0, 2.0, 3.0}));
}

TEST_CASE("maps with different keys are merged by reduce") {
  const ParallelModel count{WordCount(), fanout::host_devices(3)};
  CHECK(count(std::vector<std::string>{"a", "b", "a", "c", "a"}) == Counts{{"a", 3}, {"b", 1}, {"c", 1}});
}

TEST_CASE("a struct of spans is split by rows") {
  const ParallelModel model{WeightedSum{}, fanout::host_devices(3)};
  // [use_spans]
  const std::vector<double> x{1, 2, 3, 4, 5};
  const std::vector<double> weight{1, 0, 1, 0, 1};
  const double sum = model(Batch{.x = x, .weight = weight, .scale = 2});
  // [/use_spans]
  CHECK(sum == 18);
}

TEST_CASE("a model learns by calls and updates, and predicts by another forward") {
  const auto x = fanout::tensor<double>({-1.0, 0.0, 1.0, 2.0, 3.0});
  const auto y = fanout::tensor<double>({-1.0, 1.0, 3.0, 5.0, 7.0});
  // [use_learns]
  ParallelModel line{Line{}, fanout::host_devices(2)};
  for (int step = 0; step < 500; ++step) {
    const auto gradient = line(x, y);  // of the whole batch, on all devices
    line.update([&](Line& original) {  // the replicas follow
      original.slope -= 0.1 * gradient.first;
      original.height -= 0.1 * gradient.second;
    });
  }
  const Tensor<double, 1> predicted = line(x);
  // [/use_learns]
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(predicted[i] == doctest::Approx(y[i]));
}

TEST_CASE("a forward that looks at its deadline is whole if it is in time") {
  const ParallelModel primes{Primes(), fanout::host_devices(2), Options{.deadline = std::chrono::hours(1)}};
  CHECK(primes(std::vector<long>{2, 3, 4, 5}) == std::vector<long>{2, 3, 5});
  const ParallelModel late{Primes(), fanout::host_devices(2), Options{.deadline = std::chrono::seconds(0)}};
  CHECK_THROWS_AS(late(std::vector<long>{2, 3, 4, 5}), fanout::Timeout);
}

TEST_CASE("models with results of different types run at the same time on devices of their own") {
  const auto x = fanout::tensor<double>({1.0, 2.0});
  // [own_devices]
  const auto devices = fanout::host_devices(2);
  const ParallelModel total{Total(), fanout::DeviceSet(std::vector{devices[0]})};
  const ParallelModel damped{Damping{0.5}, fanout::DeviceSet(std::vector{devices[1]})};
  auto first = total.async(x);
  auto second = damped.async(x);
  const std::tuple results{first.get(), second.get()};  // a double and a Tensor<double, 1>
  // [/own_devices]
  CHECK(std::get<0>(results) == 3);
  CHECK(std::get<1>(results)[1] == 1);
}

TEST_CASE("models with an input whole each: pmean is their mean, stack keeps them apart") {
  const auto devices = fanout::host_devices(2);
  const auto x = fanout::tensor<double>({1.0, 2.0});
  struct Scaled {
    double factor;
    auto forward(View<const double, 1> x) const {
      const auto y = fanout::tensor<double>({factor * x[0], factor * x[1]});
      return std::tuple{fanout::pmean(y), fanout::stack(y)};
    }
  };
  const std::vector<Scaled> models{{1.0}, {3.0}};
  const auto [mean, apart] =
      fanout::gather(fanout::apply(models, devices, fanout::scatter(devices, fanout::broadcast(x))));
  CHECK(mean == fanout::tensor<double>({2.0, 4.0}));
  CHECK(apart == fanout::tensor<double>({{1.0, 2.0}, {3.0, 6.0}}));
}

TEST_CASE("a class that is a template of the kind of its arrays is split and gathered") {
  const ParallelModel step{[](Context auto& ctx, const Bodies<fanout::ConstView>& mine, const Bodies<Tensor>& all) {
                             auto place = output<double>(ctx);
                             for (std::size_t i = 0; i < place.size(); ++i) place[i] = mine.place()[i] + all.mass()[2];
                             return Bodies<Tensor>(place, Tensor(mine.mass()));
                           },
                           fanout::host_devices(2)};
  Bodies<Tensor> bodies(fanout::tensor<double>({1.0, 2.0, 3.0}), fanout::tensor<double>({4.0, 5.0, 6.0}));
  bodies = step(bodies, broadcast(bodies));
  CHECK(bodies.place() == fanout::tensor<double>({7.0, 8.0, 9.0}));
  CHECK(bodies.mass() == fanout::tensor<double>({4.0, 5.0, 6.0}));
}
