// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/gathers.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::pmax;
using fanout::pmean;
using fanout::pmin;
using fanout::psum;
using fanout::reduce;
using fanout::Tensor;
using fanout::View;
using fanout_test::Gathers;
using fanout_test::message_of;
using fanout_test::says;

__extension__ using Float16 = _Float16;
template <>
inline constexpr bool fanout::enable_scalar<Float16> = true;

namespace {

Tensor<double, 1> reals_to(std::size_t n) {
  Tensor<double, 1> tensor(n);
  for (std::size_t i = 0; i < n; ++i) tensor[i] = static_cast<double>(i);
  return tensor;
}

double sum(View<const double, 1> x) {
  double total = 0;
  for (const double value : x) total += value;
  return total;
}

double mean(View<const double, 1> x) { return sum(x) / static_cast<double>(x.extent(0)); }

/// All rows on the second of two devices.
struct AllOnSecond {
  fanout::Plan operator()(std::size_t rows, std::size_t) const {
    return {{.rows = {0, 0}, .device = 0}, {.rows = {0, rows}, .device = 1}};
  }
};

/// All rows on the second of three devices.
struct AllInTheMiddle {
  fanout::Plan operator()(std::size_t rows, std::size_t) const {
    return {{.rows = {0, 0}, .device = 0}, {.rows = {0, rows}, .device = 1}, {.rows = {rows, rows}, .device = 2}};
  }
};

}  // namespace

TEST_CASE("psum adds scalars over the shards and keeps their type") {
  ParallelModel model{[](View<const double, 1> x) {
                        return std::tuple{psum(sum(x)), psum(x.extent(0)), psum(std::complex<float>(1, 2))};
                      },
                      host_devices(3)};
  const auto [total, rows, complex] = model(reals_to(10));
  static_assert(std::is_same_v<decltype(total), const double>);
  static_assert(std::is_same_v<decltype(rows), const std::size_t>);
  CHECK(total == 45);
  CHECK(rows == 10);
  CHECK(complex == std::complex<float>(3, 6));
}

TEST_CASE("psum adds tensors, outputs and vectors element by element") {
  ParallelModel model{[](Context auto& ctx, View<const double, 1> x) {
                        Tensor<double, 2> tensor(2, 2);
                        tensor(1, 1) = x[0];
                        const auto scratch = fanout::empty<int>(ctx, 2);
                        scratch[0] = 1;
                        scratch[1] = static_cast<int>(ctx.rank());
                        const auto output = fanout::output<double>(ctx);
                        for (std::size_t i = 0; i < x.extent(0); ++i) output[i] = x[i];
                        return std::tuple{psum(tensor), psum(scratch), psum(std::vector{x[0], 1.0}), psum(output)};
                      },
                      host_devices(2)};
  const auto [tensor, scratch, vector, output] = model(reals_to(4));
  static_assert(std::is_same_v<decltype(scratch), const Tensor<int, 1>>);
  static_assert(std::is_same_v<decltype(vector), const std::vector<double>>);
  CHECK(tensor.extents() == fanout::Extents<2>{2, 2});
  CHECK(tensor(1, 1) == 2);
  CHECK(tensor(0, 0) == 0);
  CHECK(scratch[0] == 2);
  CHECK(scratch[1] == 1);
  CHECK(vector == std::vector{2.0, 2.0});
  CHECK(output[0] == 2);
  CHECK(output[1] == 4);
}

TEST_CASE("psum over one shard returns its value") {
  const ParallelModel model{[](std::span<const double> x) { return psum(std::vector<double>(x.begin(), x.end())); },
                            host_devices(1)};
  CHECK(model(std::vector<double>(20, 1.5)) == std::vector<double>(20, 1.5));
}

TEST_CASE("psum adds spans, and may stand in a vector") {
  static constexpr int counts[] = {1, 2, 3};
  ParallelModel model{
      [](View<const double, 1> x) {
        return std::tuple{psum(std::span(counts)), std::vector{psum(sum(x)), psum(1.0)}, std::vector{pmean(mean(x))}};
      },
      host_devices(2)};
  const auto [span, sums, means] = model(reals_to(5));
  static_assert(std::is_same_v<decltype(sums), const std::vector<double>>);
  CHECK(span == std::vector{2, 4, 6});
  CHECK(sums == std::vector{10.0, 2.0});
  CHECK(means == std::vector{2.0});
}

TEST_CASE("psum and pmean go down a tree, and stand inside one") {
  ParallelModel model{[](View<const double, 1> x) {
                        const double m = mean(x);
                        std::map<std::string, double> map{{"a", m}, {"b", 1.0}};
                        return dict(
                            "loss"_k = pmean(m), "rows"_k = dict("sum"_k = psum(x.extent(0)), "each"_k = x.extent(0)),
                            "tree"_k = pmean(dict("m"_k = std::optional(m), "t"_k = std::tuple{m, map})),
                            "inner"_k = psum(std::pair{1, pmean(m)}),
                            "trees"_k = psum(std::vector<std::tuple<int, Tensor<double, 1>>>(2, {3, reals_to(2)})));
                      },
                      host_devices(2)};
  const auto result = model(reals_to(13));
  CHECK(result["loss"_k] == doctest::Approx(6));
  CHECK(result["rows"_k]["sum"_k] == 13);
  CHECK(result["rows"_k]["each"_k].size() == 2);
  REQUIRE(result["tree"_k]["m"_k].has_value());
  CHECK(*result["tree"_k]["m"_k] == doctest::Approx(6));
  CHECK(std::get<0>(result["tree"_k]["t"_k]) == doctest::Approx(6));
  CHECK(std::get<1>(result["tree"_k]["t"_k]).at("a") == doctest::Approx(6));
  CHECK(result["inner"_k].first == 2);
  CHECK(result["inner"_k].second == doctest::Approx(6));
  REQUIRE(result["trees"_k].size() == 2);
  CHECK(std::get<0>(result["trees"_k][1]) == 6);
  CHECK(std::get<1>(result["trees"_k][1])[1] == 2);
}

TEST_CASE("pmean weighs each shard by its rows: 13 rows on 2 devices") {
  ParallelModel model{[](View<const double, 1> x) {
                        Tensor<double, 1> tensor(2);
                        tensor[0] = mean(x);
                        tensor[1] = 1;
                        return std::tuple{pmean(mean(x)), pmean(tensor), pmean(std::vector{mean(x)})};
                      },
                      host_devices(2)};
  const auto [scalar, tensor, vector] = model(reals_to(13));
  const double expected = 3.0 * (7.0 / 13.0) + 9.5 * (6.0 / 13.0);  // not (3 + 9.5) / 2
  CHECK(scalar == expected);
  CHECK(scalar == doctest::Approx(6));
  CHECK(tensor[0] == expected);
  CHECK(tensor[1] == doctest::Approx(1));
  CHECK(vector[0] == expected);
}

TEST_CASE("pmean of no rows gives all shards the same weight") {
  ParallelModel model{[](Context auto& ctx, View<const double, 1>) { return pmean(static_cast<double>(ctx.rank())); },
                      host_devices(4)};
  CHECK(model(Tensor<double, 1>(0)) == 1.5);
}

TEST_CASE("pmean over one shard returns its value, bit by bit") {
  ParallelModel model{[](float x) { return pmean(x); }, host_devices(2)};
  ParallelModel of_rows{[](View<const double, 1> x) { return pmean(x[0]); }, host_devices(1)};
  for (const float x : {0.1F, -0.0F, 1e-42F, 3.4e38F}) {
    const float result = model(x);
    CHECK(std::memcmp(&result, &x, sizeof x) == 0);
  }
  Tensor<double, 1> x(7);
  x[0] = 1.0 / 3.0;
  CHECK(of_rows(x) == x[0]);
}

TEST_CASE("a shard without rows has no weight in pmean, even if its value is NaN") {
  ParallelModel model{[](View<const double, 1> x) {
                        Tensor<double, 1> tensor(1);
                        tensor[0] = mean(x);
                        return std::pair{pmean(mean(x)), pmean(tensor)};
                      },
                      host_devices(2), fanout::Options{.split = AllOnSecond{}}};
  const auto [scalar, tensor] = model(reals_to(5));
  CHECK(scalar == 2);
  CHECK(tensor[0] == 2);
}

TEST_CASE("pmax and pmin take the greatest and the least over the shards, element by element") {
  ParallelModel model{[](Context auto& ctx, View<const double, 1> x) {
                        const int rank = static_cast<int>(ctx.rank());
                        auto output = fanout::output<double>(ctx);
                        for (std::size_t i = 0; i < x.extent(0); ++i) output[i] = -x[i];
                        Tensor<float, 2> tensor(1, 2);
                        tensor(0, rank % 2 == 0 ? 0 : 1) = 5.0F + static_cast<float>(rank);
                        return dict("last"_k = pmax(x[x.extent(0) - 1]), "first"_k = pmin(x[0]),
                                    "output"_k = pmax(output), "tensor"_k = pmin(tensor),
                                    "tree"_k = pmax(std::tuple{rank, std::vector{-rank, rank}}));
                      },
                      host_devices(3)};
  const auto result = model(reals_to(6));
  static_assert(std::is_same_v<decltype(result["tree"_k]), const std::tuple<int, std::vector<int>>&>);
  CHECK(result["last"_k] == 5);
  CHECK(result["first"_k] == 0);
  CHECK(result["output"_k][0] == 0);
  CHECK(result["output"_k][1] == -1);
  CHECK(result["tensor"_k](0, 0) == 0);
  CHECK(result["tensor"_k](0, 1) == 0);
  CHECK(result["tree"_k] == std::tuple{2, std::vector{0, 2}});
}

TEST_CASE("with one shard pmax, pmin and reduce give what it returned, also with more devices than rows") {
  ParallelModel model{[](View<const double, 1> x) {
                        return std::tuple{pmax(x[0]), pmin(x[0]), reduce(x[0], [](auto a, auto b) { return a * b; })};
                      },
                      host_devices(4)};
  CHECK(model(Tensor<double, 1>(1)) == std::tuple{0.0, 0.0, 0.0});
  const auto of_two = model(reals_to(2));
  CHECK(of_two == std::tuple{1.0, 0.0, 0.0});
}

TEST_CASE("a user-defined function combines numbers, arrays and trees in row order") {
  ParallelModel model{[](Context auto& ctx, View<const double, 1> x) {
                        const int digit = static_cast<int>(ctx.rank()) + 1;
                        return std::tuple{reduce(digit, [](int a, int b) { return 10 * a + b; }),
                                          reduce(Tensor<double, 1>(x), [](auto a, auto b) { return a + 2 * b; }),
                                          reduce(std::pair{digit > 1, std::vector{digit}},
                                                 [](auto a, auto b) { return static_cast<decltype(a)>(a || b); })};
                      },
                      host_devices(3)};
  const auto [digits, tensor, tree] = model(reals_to(6));
  static_assert(std::is_same_v<decltype(digits), const int>);
  CHECK(digits == 123);
  CHECK(tensor[0] == 0 + 2 * 2 + 2 * 4);
  CHECK(tensor[1] == 1 + 2 * 3 + 2 * 5);
  CHECK(tree == std::pair{true, std::vector{1}});
}

TEST_CASE("a function of structs, tuples or tensors combines them whole") {
  struct Best {
    double score;
    std::size_t row;
  };
  const auto better = [](const Best& a, const Best& b) { return a.score < b.score ? b : a; };
  ParallelModel model{
      [better](Context auto& ctx, View<const double, 1> x) {
        Best best{x[0], ctx.rows().first};
        for (std::size_t i = 1; i < x.size(); ++i) {
          best = better(best, {x[i], ctx.rows().first + i});
        }
        using Least = std::pair<double, int>;
        return std::tuple{reduce(best, better), reduce(Least(x[0], 1), [](Least a, Least b) { return b < a ? b : a; }),
                          reduce(std::string("x"), [](const std::string& a, const std::string& b) { return a + b; })};
      },
      host_devices(3)};
  auto x = reals_to(7);
  x[4] = 9;
  const auto [best, least, text] = model(x);
  static_assert(std::is_same_v<decltype(best), const Best>);
  CHECK(best.score == 9);
  CHECK(best.row == 4);
  CHECK(least == std::pair{0.0, 1});
  CHECK(text == "xxx");
}

TEST_CASE("any class that owns its data can be combined whole") {
  class Variance {  // of numbers, by way of sums
   public:
    explicit Variance(View<const double, 1> x) : count_(static_cast<double>(x.size())), sum_(sum(x)) {
      for (const double value : x) squares_ += value * value;
    }
    Variance operator+(const Variance& other) const {
      Variance both = *this;
      both.count_ += other.count_;
      both.sum_ += other.sum_;
      both.squares_ += other.squares_;
      return both;
    }
    double value() const { return squares_ / count_ - (sum_ / count_) * (sum_ / count_); }

   private:
    double count_, sum_, squares_ = 0;
  };
  ParallelModel model{[](View<const double, 1> x) {
                        return reduce(Variance(x), [](const Variance& a, const Variance& b) { return a + b; });
                      },
                      host_devices(3)};
  CHECK(model(reals_to(10)).value() == doctest::Approx(8.25));
}

namespace {

/// Takes two of this type whole, and returns the first.
template <class X>
struct Left {
  X operator()(const X& a, const X&) const { return a; }
};
template <class X>
concept CombinesWhole = Gathers<decltype(reduce(std::declval<X>(), Left<X>()))>;

/// Nobody can look into it.
struct Opaque {
  explicit Opaque(int n) : number(n) {}
  int number;
};
struct Names {
  int number;
  std::string_view name;
};

// What a function combines whole outlasts the shards.
static_assert(CombinesWhole<std::pair<Opaque, std::string>> && CombinesWhole<std::pair<Opaque, std::vector<bool>>>);
static_assert(CombinesWhole<std::optional<std::variant<int, Opaque>>>);
static_assert(CombinesWhole<std::map<std::string, std::array<Opaque, 2>>>);
static_assert(!CombinesWhole<View<const double, 1>> && !CombinesWhole<fanout::Output<int, 1>>);
static_assert(!CombinesWhole<std::string_view> && !CombinesWhole<int*> && !CombinesWhole<Names>);
static_assert(!CombinesWhole<std::pair<Opaque, View<int, 1>>> && !CombinesWhole<std::pair<Opaque, int*>>);
static_assert(!CombinesWhole<std::optional<std::span<Opaque>>>);
static_assert(!CombinesWhole<std::pair<Opaque, std::vector<Names>>>);

}  // namespace

TEST_CASE("reduce copies no value that it combines whole") {
  static int copies;
  struct Counted {
    Counted() = default;
    Counted(const Counted& other) : values(other.values) { ++copies; }
    Counted(Counted&&) noexcept = default;
    Counted& operator=(const Counted& other) {
      values = other.values;
      ++copies;
      return *this;
    }
    Counted& operator=(Counted&&) noexcept = default;
    ~Counted() = default;
    std::vector<int> values;
  };
  const ParallelModel model{[](std::span<const int> x) {
                              Counted own;
                              own.values.assign(x.begin(), x.end());
                              return reduce(std::move(own), [](Counted all, const Counted& next) {
                                all.values.insert(all.values.end(), next.values.begin(), next.values.end());
                                return all;
                              });
                            },
                            host_devices(3)};
  copies = 0;
  CHECK(model(std::vector{1, 2, 3, 4, 5}).values == std::vector{1, 2, 3, 4, 5});
  CHECK(copies == 0);
}

TEST_CASE("a shard without rows counts only in sums, unless no shard has rows") {
  ParallelModel model{[](Context auto& ctx, View<const double, 1>) {
                        const int rank = static_cast<int>(ctx.rank());
                        const auto write_down = [](int a, int b) { return 10 * a + b; };
                        const auto last = [](std::tuple<int>, std::tuple<int> b) { return b; };
                        return std::tuple{psum(1),
                                          pmax(-rank),
                                          pmin(rank),
                                          pmax(std::vector{rank}),
                                          reduce(rank + 1, write_down),
                                          reduce(std::tuple{rank}, last)};
                      },
                      host_devices(3), fanout::Options{.split = AllInTheMiddle{}}};
  CHECK(model(reals_to(5)) == std::tuple{3, -1, 1, std::vector{1}, 2, std::tuple{1}});
  CHECK(model(Tensor<double, 1>(0)) == std::tuple{3, 0, 0, std::vector{2}, 123, std::tuple{2}});
}

TEST_CASE("sums are added in row order and bitwise the same in every run") {
  ParallelModel model{[](View<const double, 1> x) { return psum(1.0 / (1.0 + 3.0 * x[0])); }, host_devices(4)};
  const auto x = reals_to(4);
  double expected = 0;
  for (const double value : x) expected += 1.0 / (1.0 + 3.0 * value);
  for (int run = 0; run < 50; ++run) CHECK(model(x) == expected);
}

TEST_CASE("arrays and vectors that cannot be combined are refused with place, shards and extents") {
  ParallelModel arrays{[](Context auto& ctx, View<const double, 1>, bool wrong) {
                         return dict("loss"_k = psum(Tensor<float, 2>(2, wrong && ctx.rank() == 2 ? 4 : 3)));
                       },
                       host_devices(3)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { arrays(reals_to(6), true); }), "output.loss", "[2, 3]",
             "shard 0 on host:0, rows [0, 2)", "[2, 4]", "shard 2 on host:2, rows [4, 6)", "psum"));
  CHECK(arrays(reals_to(6), false)["loss"_k].extents() == fanout::Extents<2>{2, 3});

  ParallelModel vectors{
      [](View<const double, 1> x, bool wrong) { return pmean(std::vector<double>(wrong ? x.extent(0) : 2, 1.0)); },
      host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { vectors(reals_to(5), true); }), "output", "3 elements", "found 2",
             "pmean"));
  CHECK(vectors(reals_to(5), false) == std::vector{1.0, 1.0});

  ParallelModel by_rows{[](View<const double, 1> x) {
                          return std::tuple{1, reduce(Tensor<double, 1>(x), [](double a, double b) { return a - b; })};
                        },
                        host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { by_rows(reals_to(5)); }), "output[1]", "[3]", "[2]",
             "reduce needs arrays of the same extents"));
}

namespace {

/// Blocks of 64 rows, dealt to the devices in turn.
struct BlocksOf64 {
  fanout::Plan operator()(std::size_t rows, std::size_t devices) const {
    fanout::Plan plan;
    for (std::size_t begin = 0; begin < rows; begin += 64) {
      plan.add({.rows = {begin, std::min(begin + 64, rows)}, .device = begin / 64 % devices});
    }
    if (rows == 0) plan.add({.rows = {0, 0}, .device = 0});
    return plan;
  }
};

/// Structs of combined members, too.
template <class T>
struct Averages {
  fanout::Mean<T> mean;
  fanout::Mean<Tensor<T, 1>> means;
  fanout::Sum<T> sum;
};

/// The mean of the same number on all shards, and how many shards there are, as numbers, arrays, vectors and members.
template <class T>
void averages_of(T x) {
  const ParallelModel model{
      [x](fanout::RowRange) {
        Tensor<T, 1> many(600);
        for (T& value : many) value = x;
        return std::tuple{pmean(x), pmean(many), pmean(std::vector(3, x)), psum(T(1)), Averages<T>{x, many, T(1)}};
      },
      host_devices(2), fanout::Options{.split = BlocksOf64()}};
  const auto [mean, means, vector, shards, members] = model(fanout::Range{1'000'000});
  static_assert(std::is_same_v<decltype(mean), const T>);
  static_assert(std::is_same_v<decltype(means), const Tensor<T, 1>>);
  CHECK(mean == x);
  CHECK(means[0] == x);
  CHECK(means[599] == x);
  CHECK(vector[2] == x);
  CHECK(members.mean.value == x);
  CHECK(members.means.value[300] == x);
  CHECK(shards == T(15625));
  CHECK(members.sum.value == T(15625));
}

}  // namespace

TEST_CASE("means and sums of many blocks are as exact as their type") {
  averages_of<Float16>(Float16(1));
  averages_of<Float16>(Float16(60000));  // a sum of which would be infinite
  averages_of<float>(0.1F);

  const ParallelModel complex{[](fanout::RowRange) { return pmean(std::complex<float>(0.1F, 3)); }, host_devices(1),
                              fanout::Options{.split = BlocksOf64()}};
  CHECK(complex(fanout::Range{1'000'000}) == std::complex<float>(0.1F, 3));

  // One lost bit after the other, if each sum were rounded to a float.
  const ParallelModel sums{[](fanout::RowRange rows) {
                             const float x = rows.first == 0 ? 0x1p24F : 1;
                             return std::tuple{psum(x), psum(std::vector{x})};
                           },
                           host_devices(1), fanout::Options{.split = BlocksOf64()}};
  const auto [number, vector] = sums(fanout::Range{64 * 101});
  CHECK(number == 0x1p24F + 100);
  CHECK(vector[0] == 0x1p24F + 100);
}

TEST_CASE("sums of whole numbers wrap") {
  const ParallelModel model{[](View<const int, 1> x) {
                              return std::tuple{psum(x[0]), psum(std::vector(300, x[0])), psum(std::int8_t{100})};
                            },
                            host_devices(2)};
  Tensor<int, 1> x(2);
  x[0] = x[1] = std::numeric_limits<int>::max();
  const auto [number, vector, small] = model(x);
  CHECK(number == -2);
  CHECK(vector[299] == -2);
  CHECK(small == -56);
}

TEST_CASE("an array of the only shard is the result under psum, pmean and reduce, without a copy") {
  const auto squares = [](View<const double, 1> x) {
    Tensor<double, 1> added(x);
    Tensor<double, 1> averaged(x);
    Tensor<double, 1> multiplied(x);
    const auto at = [](const Tensor<double, 1>& y) {
      return fanout::first(reinterpret_cast<std::uintptr_t>(y.data()));
    };
    return std::tuple{at(added),
                      at(averaged),
                      at(multiplied),
                      psum(std::move(added)),
                      pmean(std::move(averaged)),
                      reduce(std::move(multiplied), [](double u, double v) { return u * v; }),
                      pmax(x)};  // a view is still copied
  };
  const Tensor<double, 1> x = reals_to(5);
  for (const int devices : {1, 2}) {
    const ParallelModel model{squares, host_devices(devices)};
    const auto [added_at, averaged_at, multiplied_at, added, averaged, multiplied, greatest] =
        model(fanout::on_all(), fanout::broadcast(x));
    CHECK((reinterpret_cast<std::uintptr_t>(added.data()) == added_at) == (devices == 1));
    CHECK((reinterpret_cast<std::uintptr_t>(averaged.data()) == averaged_at) == (devices == 1));
    CHECK((reinterpret_cast<std::uintptr_t>(multiplied.data()) == multiplied_at) == (devices == 1));
    CHECK(added[4] == 4.0 * devices);
    CHECK(averaged[4] == 4);
    CHECK(multiplied[4] == (devices == 1 ? 4 : 16));
    CHECK(greatest == x);
    CHECK(greatest.data() != x.data());
  }
}
