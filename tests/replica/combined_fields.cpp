// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
//
// Fields of a model that are combined over the replicas after each call.
#include <doctest/doctest.h>

#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::First;
using fanout::host_devices;
using fanout::Max;
using fanout::Mean;
using fanout::Min;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::Sum;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

using namespace fanout::literals;

namespace {

/// Normalises columns by running means, as a batch norm does, and counts.
struct Norm {
  Mean<Tensor<double, 1>> mean = Tensor<double, 1>(2);
  Sum<long> rows;
  Max<double> greatest = -1e9;
  Min<std::vector<double>> least = std::vector<double>(2, 1e9);
  int calls = 0;  // each replica's own

  auto forward(fanout::Context auto& ctx, View<const double, 2> x) {
    auto y = fanout::output<double>(ctx, x.extent(1));
    ++calls;
    for (std::size_t c = 0; c < 2; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < x.extent(0); ++r) {
        y(r, c) = x(r, c) - mean.value[c];
        sum += x(r, c);
        greatest.value = std::max(greatest.value, x(r, c));
        least.value[c] = std::min(least.value[c], x(r, c));
      }
      if (x.extent(0) != 0) mean.value[c] = 0.9 * mean.value[c] + 0.1 * sum / static_cast<double>(x.extent(0));
    }
    rows.value += static_cast<long>(x.extent(0));
    return y;
  }

  /// Without learning.
  double forward(double x) const { return x - mean.value[0]; }
};

Tensor<double, 2> batch(std::size_t rows, double start = 0) {
  Tensor<double, 2> x(rows, 2);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = start + static_cast<double>((i * 7) % 11) - 4;
  return x;
}

template <class Values>
std::vector<double> listed(const Values& values) {
  return {values.begin(), values.end()};
}

void check_like(const Norm& norm, const Norm& expected) {
  for (std::size_t c = 0; c < 2; ++c) CHECK(norm.mean.value[c] == doctest::Approx(expected.mean.value[c]));
  CHECK(norm.rows == expected.rows);
  CHECK(norm.greatest == expected.greatest);
  CHECK(norm.least.value == expected.least.value);
}

using Values = View<const double, 1>;

class Listed {
 public:
  void count() { ++calls_.value; }
  int calls() const { return calls_; }

 private:
  Sum<int> calls_;
  friend constexpr auto fields(const Listed*) { return fanout::dict("calls"_k = &Listed::calls_); }
};

/// Fields beside one that is combined: nobody can take them apart, or change them.
struct Packed {
  unsigned low : 4;
  unsigned high : 4;
};
struct Titles {
  float weight = 0;
  std::vector<std::string> names;
};
struct Beside {
  Sum<int> calls;
  Packed packed{1, 2};
  Titles names;
  std::function<float(float)> function;
  std::any any;
  const Sum<int>* elsewhere = nullptr;
  fanout::PerReplica<Sum<int>> own;
  int forward(View<const float, 1>) {
    ++own->value;
    return ++calls.value;
  }
};
/// Of which only that it has no such field can be told.
struct Inherits : Titles {
  std::any any;
  int calls = 0;
  int forward(View<const float, 1>) { return ++calls; }
};

}  // namespace

TEST_CASE("fields that show nothing, refer to others or are each replica's own are not combined") {
  const Tensor<float, 1> x(4);
  const Sum<int> another = 0;
  Beside beside;
  beside.elsewhere = &another;
  ParallelModel model{beside, host_devices(2)};
  model(x);
  model(x);
  CHECK(model.model().calls == 4);
  CHECK(model.model().own->value == 0);
  CHECK(model.replica(1).model().own->value == 2);
  CHECK(another == 0);

  struct Fixed {
    Sum<int> calls;
    const Sum<int> fixed = 7;
    int forward(View<const float, 1>) { return calls.value += fixed; }
  };
  const ParallelModel holds_const{Fixed{}, host_devices(2)};
  holds_const(x);
  CHECK(holds_const.model().calls == 14);

  const ParallelModel inherits{Inherits{}, host_devices(2)};
  inherits(x);
  CHECK(inherits(x)[1] == 2);
}

TEST_CASE("after every call the original and all replicas hold what one device would") {
  const std::size_t count = 5;
  std::vector<Tensor<double, 2>> batches;
  for (std::size_t i = 0; i < count; ++i) batches.push_back(batch(3 * i + 1, static_cast<double>(i)));
  Norm serial;
  std::vector<std::vector<double>> outputs;
  {
    const ParallelModel model{Norm{}, host_devices(1)};
    for (const auto& x : batches) outputs.push_back(listed(model(x)));
    serial = model.model();
    CHECK(serial.rows == 35);
    CHECK(serial.calls == 0);
  }
  for (const int devices : {2, 3, 4}) {
    CAPTURE(devices);
    ParallelModel model{Norm{}, host_devices(devices)};
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<double> y = listed(model(batches[i]));
      REQUIRE(y.size() == outputs[i].size());
      for (std::size_t k = 0; k < y.size(); ++k) CHECK(y[k] == doctest::Approx(outputs[i][k]));
      for (std::size_t d = 0; d < model.devices().size(); ++d) {
        check_like(model.replica(d).model(), model.model());
        CHECK(model.replica(d).version() == 0);  // nothing else was copied
      }
    }
    check_like(model.model(), serial);
    CHECK(model.model().calls == 0);
    CHECK(model.replica(0).model().calls == count);
    CHECK(model.replica(1).model().calls == count - 1);  // idle in the first call, of one row
  }
}

TEST_CASE("a call of no rows and one with nothing to combine leave the values") {
  ParallelModel model{Norm{}, host_devices(2)};
  static_cast<void>(model(batch(4)));
  const Norm before = model.model();
  static_cast<void>(model(batch(0)));
  check_like(model.model(), before);
  const Tensor<double, 1> y = model(1.0);  // its forward is const
  CHECK(y[0] == 1.0 - before.mean.value[0]);
  check_like(model.model(), before);
}

TEST_CASE("an update changes them as any field, and sums go on from there") {
  ParallelModel model{Norm{}, host_devices(3)};
  static_cast<void>(model(batch(7)));
  model.update([](Norm& norm) { norm.rows = 1000; });
  static_cast<void>(model(batch(5)));
  CHECK(model.model().rows == 1005);
  static_cast<void>(model(batch(1)));
  CHECK(model.model().rows == 1006);
  for (std::size_t d = 0; d < 3; ++d) CHECK(model.replica(d).model().rows == 1006);
  model.update([](Norm& norm) { norm.least.value.assign(2, -100); });
  CHECK(model.replica(2).model().least.value != model.model().least.value);  // until it runs
  static_cast<void>(model(batch(1)));
  static_cast<void>(model(batch(6)));
  CHECK(model.replica(2).model().least.value == std::vector<double>(2, -100));
}

TEST_CASE("a call that fails leaves combined fields unchanged everywhere") {
  struct Fails {
    Sum<int> calls;
    std::vector<Mean<double>> means;
    int tries = 0;
    double forward(Values x, bool fail, bool grow) {
      ++calls.value;
      ++tries;
      means[0].value += x[0];
      if (grow) means.emplace_back(1.0);
      if (fail && x[0] == 3) throw std::runtime_error("three");
      return means[0];
    }
  };
  ParallelModel model{Fails{.calls = {}, .means = {Mean<double>(0.5)}}, host_devices(3)};
  Tensor<double, 1> x(3);
  x[2] = 3;
  static_cast<void>(model(x, false, false));
  const auto check_as_after_one = [&] {
    for (std::size_t d = 0; d < 3; ++d) {
      const Fails& replica = model.replica(d).model();
      CHECK(replica.calls == 3);
      REQUIRE(replica.means.size() == 1);
      CHECK(replica.means[0] == doctest::Approx(1.5));
    }
    CHECK(model.model().calls == 3);
    CHECK(model.model().means[0] == doctest::Approx(1.5));
  };
  check_as_after_one();
  CHECK_THROWS_AS(model(x, true, false), fanout::ReplicaError);
  check_as_after_one();
  CHECK(model.replica(1).model().tries == 2);  // no copy of the rest
  CHECK_THROWS_AS(model(x, true, true), fanout::ReplicaError);
  CHECK(model.model().means.size() == 1);
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(x, false, true); }), "do not stand at the same places",
             "model.means"));
  static_cast<void>(model(x, false, false));
  CHECK(model.model().calls == 6);
  CHECK(model.model().means[0] == doctest::Approx(2.5));
}

TEST_CASE("missing fields in a map whose keys are pairs are named by their keys") {
  struct Places {
    std::map<std::pair<int, int>, Sum<int>> sums;
    int forward(fanout::ShardContext<fanout::HostDevice>& ctx, Values, int lost) {
      if (ctx.rank() == 1) {
        sums.erase({0, lost});
        sums[{1, 0}];
      }
      return 0;
    }
  };
  for (const int lost : {0, 1}) {
    const ParallelModel model{Places{{{{0, 0}, {}}, {{0, 1}, {}}}}, host_devices(2)};
    CHECK(says(message_of<fanout::StructureMismatch>([&] { static_cast<void>(model(Tensor<double, 1>(2), lost)); }),
               "do not stand at the same places", "model.sums[(0, " + std::to_string(lost) + ")]"));
  }
}

TEST_CASE("extents that differ are refused with the place, and nothing is changed") {
  struct Counts {
    Sum<int> calls;
    struct Inner {
      First<Tensor<int, 1>> first;
      Mean<std::vector<double>> means;
      Sum<Tensor<int, 1>> sums;
    } inner;
    int forward(Values, std::size_t means, std::size_t sums) {
      ++calls.value;
      inner.first.value = Tensor<int, 1>(2);
      inner.means.value.assign(means, 1.5);
      inner.sums.value = Tensor<int, 1>(sums);
      if (sums != 0) inner.sums.value[0] = 2;
      return 0;
    }
  };
  ParallelModel model{Counts{}, host_devices(2)};
  const Tensor<double, 1> x(4);
  CHECK(model(x, 3, 3).size() == 2);  // from no elements to some, on all alike
  CHECK(model.model().inner.means.value == std::vector<double>(3, 1.5));
  CHECK(model.model().inner.first.value.size() == 2);
  CHECK(model.model().inner.sums.value[0] == 4);
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(x, 3, 4); }), "changed its extents", "model.inner.sums",
             "shard 1 on host:1, rows [2, 4)"));
  CHECK(model.model().calls == 2);
  CHECK(model.replica(0).model().inner.sums.value.size() == 3);

  struct Wrong {
    Sum<int> calls;
    Mean<std::vector<double>> means;
    int forward(Values x) {
      ++calls.value;
      means.value.resize(static_cast<std::size_t>(x[0]));
      return 0;
    }
  };
  const ParallelModel wrong{Wrong{}, host_devices(2)};
  Tensor<double, 1> sizes(2);
  sizes[1] = 1;
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { wrong(sizes); }), "replicas left arrays of different extents",
             "model.means", "0 elements", "shard 1 on host:1"));
  CHECK(wrong.model().calls == 0);
  CHECK(wrong.replica(1).model().calls == 0);
}

TEST_CASE("a device that runs several shards has one value, of all their rows") {
  struct Total {
    Sum<double> sum;
    Mean<double> mean;
    int forward(Values x) {
      for (const double value : x) sum.value += value;
      mean.value = x[0];
      return 0;
    }
  };
  ParallelModel model{
      Total{.sum = 100.0, .mean = {}}, host_devices(3), Options{.split = [](std::size_t rows, std::size_t) {
        if (rows == 0) return Plan{{.rows = {0, 0}, .device = 0}};
        return Plan{{.rows = {0, 1}, .device = 2}, {.rows = {1, 2}, .device = 0}, {.rows = {2, 5}, .device = 2}};
      }}};
  Tensor<double, 1> x(5);
  for (std::size_t i = 0; i < 5; ++i) x[i] = static_cast<double>(i + 1);
  const double last_on_2 = 3;
  for (int run = 0; run < 20; ++run) {
    model.update([](Total& total) { total.sum = 100.0; });
    static_cast<void>(model(x));
    CHECK(model.model().sum == 115);
    // Which of its two shards a device runs last is unspecified.
    const double mean = model.model().mean;
    CHECK((mean == doctest::Approx((4 * last_on_2 + 2) / 5) || mean == doctest::Approx((4 * 1 + 2) / 5.0)));
  }
}

TEST_CASE("combined fields are found in structs, maps, optionals, dicts and classes that list fields") {
  struct Moments {
    double first = 0;
    std::vector<double> second{0};
  };
  struct Model {
    Mean<Moments> moments;
    std::map<std::string, Listed> named;
    std::optional<Sum<int>> maybe = 0;
    std::optional<Sum<int>> never;
    decltype(fanout::dict("a"_k = std::tuple<int, Max<int>>())) dict;
    int forward(fanout::ShardContext<fanout::HostDevice>& ctx, Values x) {
      moments.value.first = x[0];
      moments.value.second[0] = x[0] * x[0];
      named.at("one").count();
      ++maybe->value;
      std::get<1>(dict["a"_k]).value = static_cast<int>(ctx.rank());
      return 0;
    }
  };
  Model start;
  start.named["one"];
  const ParallelModel model{start, host_devices(2)};
  Tensor<double, 1> x(4);
  x[0] = 1;
  x[2] = 3;
  static_cast<void>(model(x));
  CHECK(model.model().moments.value.first == 2);
  CHECK(model.model().moments.value.second[0] == 5);
  CHECK(model.model().named.at("one").calls() == 2);
  CHECK(*model.model().maybe == 2);
  CHECK_FALSE(model.model().never.has_value());
  CHECK(std::get<1>(model.model().dict["a"_k]) == 1);
}

TEST_CASE("replicate and apply combine fields without a ParallelModel") {
  const auto devices = host_devices(2);
  const auto replicas = fanout::replicate(Norm{}, devices);
  const Tensor<double, 2> x = batch(6);
  const auto inputs = fanout::scatter(devices, x);
  static_cast<void>(fanout::apply(replicas, inputs));
  CHECK(replicas.original().model.rows == 6);
  static_cast<void>(fanout::apply(replicas, inputs));
  CHECK(replicas.original().model.rows == 12);
  CHECK(replicas[1].model().rows == 12);
}

TEST_CASE("calls from many threads take turns, and const calls run between them") {
  struct Slow {
    Sum<long> rows;
    Mean<double> calls;
    int forward(fanout::ShardContext<fanout::HostDevice>& ctx, Values x) {
      // Of another call that is only half done there are halves.
      const bool half = calls.value != static_cast<double>(static_cast<long>(calls.value));
      rows.value += static_cast<long>(x.size());
      calls.value += 1;
      if (ctx.rank() == 1) std::this_thread::sleep_for(std::chrono::microseconds(50));  // the other one has ended then
      return half ? 1 : 0;
    }
    long forward(std::string) const { return rows; }
  };
  const ParallelModel model{Slow{}, host_devices(2)};
  const Tensor<double, 1> x(6);
  std::vector<std::thread> threads;
  std::atomic<int> odd{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        if (t == 2) {
          odd += model(std::string())[0] % 6 != 0;
        } else {
          for (const int half : model(x)) odd += half;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(odd == 0);
  CHECK(model.model().rows == 600);
  CHECK(model.model().calls == 100);
  CHECK(model.replica(1).model().calls == 100);
}

TEST_CASE("a call from inside its own forward is an error at once, and its const one is not") {
  struct Nested {
    Sum<int> calls;
    std::function<double(int)> again;
    double forward(int depth) {
      ++calls.value;
      return depth == 0 ? 0 : again(depth);
    }
    double forward(std::string) const { return calls; }
  };
  ParallelModel model{Nested{}, host_devices(1)};
  model.update([&](Nested& nested) { nested.again = [&](int) { return model(0)[0]; }; });
  CHECK(says(message_of<fanout::ReplicaError>([&] { model(1); }),
             "a model with a non-const forward was called from inside its own forward"));
  CHECK(model.model().calls == 0);
  model.update([&](Nested& nested) { nested.again = [&](int) { return model(std::string())[0]; }; });
  CHECK(model(1)[0] == 0);  // as before the call
  CHECK(model.model().calls == 1);
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Adds every row to sums of several types.
struct Totals {
  Sum<double> number;
  Sum<std::complex<double>> complex;
  Sum<Tensor<float, 1>> array = Tensor<float, 1>(1);
  Sum<std::vector<double>> vector = std::vector<double>(1);

  int forward(View<const double, 1> x) {
    for (const double each : x) {
      number.value += each;
      complex.value += std::complex<double>(each, 1);
      array.value[0] += static_cast<float>(each);
      vector.value[0] += each;
    }
    return 0;
  }
  bool all_are(double wanted) const {
    return number == wanted && complex.value.real() == wanted && array.value[0] == static_cast<float>(wanted) &&
           vector.value[0] == wanted;
  }
};

}  // namespace

TEST_CASE("a sum that is infinite stays infinite, and one that is NaN stays NaN") {
  for (int devices = 1; devices < 4; ++devices) {
    for (const double first : {infinity, -infinity}) {
      ParallelModel model{Totals{}, host_devices(devices)};
      Tensor<double, 1> x(6);
      for (double& each : x) each = 1;
      for (int call = 0; call < 3; ++call) {
        x[4] = call == 0 ? first : 1;  // by a replica that is not the first
        model(x);
        CHECK(model.model().all_are(first));
        CHECK(model.model().complex.value.imag() == 6 * (call + 1));
      }
      x[4] = -first;
      model(x);
      for (int call = 0; call < 2; ++call) {
        CHECK(std::isnan(model.model().number.value));
        CHECK(std::isnan(model.model().complex.value.real()));
        CHECK(std::isnan(model.model().array.value[0]));
        x[4] = 1;
        model(x);
      }
    }
  }
}

TEST_CASE("parts of a sum are infinite on their own, and a sum that is set anew is finite again") {
  struct Totals {
    Sum<double> number;
    Sum<std::complex<double>> complex;
    Sum<std::array<float, 2>> array;
    Sum<Tensor<double, 1>> tensor{Tensor<double, 1>(std::size_t{2})};
    int forward(View<const double, 1> v) {
      for (const double e : v) {
        if (e == -5) number.value = 0;
        number.value += e;
        complex.value += std::complex<double>(e, 1);
        array.value[0] += static_cast<float>(e);
        array.value[1] += 1;
        tensor.value[0] += e;
        tensor.value[1] += 1;
      }
      return 0;
    }
  };
  for (int devices = 1; devices < 5; ++devices) {
    CAPTURE(devices);
    for (const double first : {infinity, -infinity}) {
      ParallelModel model{Totals(), host_devices(devices)};
      Tensor<double, 1> x = fanout::tensor<double>({first, 1, 1, 1});
      for (int call = 1; call < 4; ++call) {
        model(x);
        x[0] = 1;
        const Totals& now = model.model();
        CHECK(now.number.value == first);
        CHECK(now.complex.value == std::complex<double>(first, 4 * call));
        CHECK(now.array.value[0] == static_cast<float>(first));
        CHECK(now.array.value[1] == static_cast<float>(4 * call));
        CHECK(now.tensor.value[0] == first);
        CHECK(now.tensor.value[1] == 4 * call);
      }
      model(fanout::tensor<double>({-5, -5, -5, -5}));
      CHECK(model.model().number.value == -5.0 * devices);
    }
  }
}
