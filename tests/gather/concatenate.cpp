// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/message_of.hpp"

using fanout::Context;
using fanout::host_devices;
using fanout::Output;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::count_to;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// An array whose rows have a unit, which must be the same everywhere.
struct Measured {
  std::vector<int> rows;
  char unit;
};

}  // namespace

template <>
struct fanout::leaf_traits<Measured> {
  using piece_type = Measured;
  static std::size_t rows(const Measured& x) { return x.rows.size(); }
  static Measured piece(const Measured& x, std::size_t begin, std::size_t end) {
    return {{x.rows.data() + begin, x.rows.data() + end}, x.unit};
  }
  static std::vector<int> concatenate(const auto& pieces, const LeafPath& path) {
    std::vector<int> all;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].unit != pieces[0].unit) throw ShapeMismatch("units at " + to_string(path));
      all.insert(all.end(), pieces[i].rows.begin(), pieces[i].rows.end());
    }
    return all;
  }
};

namespace {

template <class T, std::size_t R>
std::vector<T> values(const Tensor<T, R>& tensor) {
  return std::vector<T>(tensor.begin(), tensor.end());
}

void fill(const View<int, 2>& to, View<const int, 1> from, int factor) {
  for (std::size_t i = 0; i < to.extent(0); ++i) {
    for (std::size_t k = 0; k < to.extent(1); ++k) to(i, k) = factor * (10 * from[i] + static_cast<int>(k));
  }
}

/// What fill() makes of count_to(rows).
std::vector<int> filled(int rows, int columns, int factor) {
  std::vector<int> all;
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < columns; ++k) all.push_back(factor * (10 * i + k));
  }
  return all;
}

/// An output of the row numbers, times a factor.
Output<int, 2> make(Context auto& ctx, View<const int, 1> x, int columns, int factor) {
  auto output = fanout::output<int>(ctx, columns);
  fill(output, x, factor);
  return output;
}

/// The same output at two places.
struct Twice {
  const int** seen;
  auto forward(Context auto& ctx, View<const int, 1> x) const {
    const auto output = make(ctx, x, 2, 1);
    if (ctx.rank() == 0) *seen = output.data();
    return std::pair{output, output};
  }
};

enum class Color : std::uint8_t { red, green };
struct Box {
  int left, right;
};

}  // namespace

TEST_CASE("tensors are concatenated by rows") {
  ParallelModel model{[](View<const int, 1> x) {
                        Tensor<int, 2> result(x.extent(0), 2);
                        fill(result, x, 1);
                        return result;
                      },
                      host_devices(3)};
  const auto result = model(count_to(7));
  static_assert(std::is_same_v<decltype(result), const Tensor<int, 2>>);
  CHECK(result.extent(0) == 7);
  CHECK(result.extent(1) == 2);
  CHECK(values(result) == filled(7, 2, 1));
}

TEST_CASE("the tensor of the only shard is moved out") {
  const float* seen = nullptr;
  ParallelModel model{[&seen](View<const int, 1> x) {
                        Tensor<float, 1> result(x.extent(0));
                        seen = result.data();
                        return result;
                      },
                      host_devices(1)};
  CHECK(model(count_to(3)).data() == seen);
}

TEST_CASE("the vector of the only shard is moved out") {
  const auto is_moved_out = [](const auto& element) {
    using Vector = std::vector<std::remove_cvref_t<decltype(element)>>;
    const void* seen = nullptr;
    ParallelModel model{[&](View<const int, 1> x) {
                          Vector result(x.extent(0), element);
                          seen = result.data();
                          return std::pair{result.size(), std::move(result)};
                        },
                        host_devices(1)};
    const auto [sizes, result] = model(count_to(3));
    return result == Vector(3, element) && result.data() == seen;
  };
  CHECK(is_moved_out(5));
  CHECK(is_moved_out(2.5));
  CHECK(is_moved_out(std::string("a text that is too long to stand in the string itself")));
}

TEST_CASE("a view that forward returns is copied") {
  const auto x = count_to(5);
  ParallelModel model{[](View<const int, 1> rows) { return rows; }, host_devices(1)};
  const auto result = model(x);
  static_assert(std::is_same_v<decltype(result), const Tensor<int, 1>>);
  CHECK(result.data() != x.data());
  CHECK(values(result) == values(x));
}

TEST_CASE("an output is gathered without a copy, with one device and with several") {
  for (const int devices : {1, 2, 5}) {
    const int* first = nullptr;
    ParallelModel model{[&first](Context auto& ctx, View<const int, 1> x) {
                          auto output = make(ctx, x, 3, 2);
                          if (ctx.rank() == 0) first = output.data();
                          return output;
                        },
                        host_devices(devices)};
    const auto result = model(count_to(11));
    CHECK(result.data() == first);
    CHECK(values(result) == filled(11, 3, 2));
  }
}

TEST_CASE("an output returned at two places is moved once and copied once") {
  const int* seen = nullptr;
  ParallelModel model{Twice{&seen}, host_devices(2)};
  const auto [a, b] = model(count_to(5));
  CHECK(a.data() == seen);
  CHECK(b.data() != seen);
  CHECK(values(a) == filled(5, 2, 1));
  CHECK(values(b) == filled(5, 2, 1));
}

TEST_CASE("outputs requested in different orders on different shards are right, whatever their row sizes") {
  const auto swapped = [](int columns_of_b) {
    return [columns_of_b](Context auto& ctx, View<const int, 1> x) {
      if (ctx.rank() % 2 == 0) {
        auto a = make(ctx, x, 2, 1);
        auto b = make(ctx, x, columns_of_b, 7);
        return std::pair{a, b};
      }
      auto b = make(ctx, x, columns_of_b, 7);
      auto a = make(ctx, x, 2, 1);
      return std::pair{a, b};
    };
  };
  for (const int columns : {2, 3}) {
    CAPTURE(columns);
    ParallelModel model{swapped(columns), host_devices(3)};
    for (int run = 0; run < 20; ++run) {
      const auto [a, b] = model(count_to(8));
      CHECK(values(a) == filled(8, 2, 1));
      CHECK(values(b) == filled(8, columns, 7));
    }
  }
}

TEST_CASE("outputs of different element types in different orders do not mix") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        const auto ints = [&] {
                          auto output = fanout::output<int>(ctx);
                          for (std::size_t i = 0; i < x.extent(0); ++i) output[i] = x[i];
                          return output;
                        };
                        const auto floats = [&] {
                          auto output = fanout::output<float>(ctx);
                          for (std::size_t i = 0; i < x.extent(0); ++i) output[i] = 0.5F * static_cast<float>(x[i]);
                          return output;
                        };
                        if (ctx.rank() == 1) {
                          const auto second = floats();
                          return std::pair{ints(), second};
                        }
                        const auto first = ints();
                        return std::pair{first, floats()};
                      },
                      host_devices(2)};
  const auto [ints, floats] = model(count_to(4));
  CHECK(values(ints) == std::vector{0, 1, 2, 3});
  CHECK(values(floats) == std::vector{0.F, 0.5F, 1.F, 1.5F});
}

TEST_CASE("outputs are right if their number differs between shards") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        // Every shard throws another number of outputs away; the last shards ask for more than eight.
                        for (int i = 0; i < 6 * static_cast<int>(ctx.rank()); ++i) make(ctx, x, 2, 100);
                        return make(ctx, x, 2, 3);
                      },
                      host_devices(4)};
  CHECK(values(model(count_to(9))) == filled(9, 2, 3));
}

TEST_CASE("more outputs than one block of buffers holds are gathered without a copy") {
  std::array<const int*, 20> seen{};
  ParallelModel model{[&seen](Context auto& ctx, View<const int, 1> x) {
                        std::vector<Output<int, 2>> all;
                        for (int i = 0; i < 20; ++i) {
                          all.push_back(make(ctx, x, 1, i));
                          if (ctx.rank() == 0) seen[static_cast<std::size_t>(i)] = all.back().data();
                        }
                        return all;
                      },
                      host_devices(3)};
  const auto all = model(count_to(6));
  REQUIRE(all.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(all[i].data() == seen[i]);
    CHECK(values(all[i]) == filled(6, 1, static_cast<int>(i)));
  }
}

TEST_CASE("part of an output's rows is copied") {
  const int* seen = nullptr;
  ParallelModel model{[&seen](Context auto& ctx, View<const int, 1> x) {
                        const auto output = make(ctx, x, 2, 1);
                        if (ctx.rank() == 0) seen = output.data();
                        return output.rows({0, 1});
                      },
                      host_devices(2)};
  const auto result = model(count_to(5));  // the first rows of [0, 3) and [3, 5)
  CHECK(result.data() != seen);
  CHECK(values(result) == std::vector{0, 1, 30, 31});
}

TEST_CASE("an output is copied if other shards return tensors of their own") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        auto whole = make(ctx, x, 2, 1);
                        if (ctx.rank() == 0) return Tensor<int, 2>(whole);
                        Tensor<int, 2> own(x.extent(0), 2);
                        fill(own, x, 1);
                        return own;
                      },
                      host_devices(2)};
  CHECK(values(model(count_to(5))) == filled(5, 2, 1));
}

TEST_CASE("an output that is a tensor in a map and in a vector is gathered without a copy") {
  const int* seen[2]{};
  ParallelModel model{[&seen](Context auto& ctx, View<const int, 1> x) {
                        const auto a = make(ctx, x, 2, 1);
                        const auto b = make(ctx, x, 3, 2);
                        if (ctx.rank() == 0) {
                          seen[0] = a.data();
                          seen[1] = b.data();
                        }
                        std::map<std::string, Tensor<int, 2>> map;
                        map.emplace("a", a);
                        std::vector<Tensor<int, 2>> vector;
                        vector.emplace_back(b);
                        return std::pair{std::move(map), std::move(vector)};
                      },
                      host_devices(2)};
  const auto [map, vector] = model(count_to(5));
  REQUIRE(map.size() == 1);
  REQUIRE(vector.size() == 1);
  CHECK(map.at("a").data() == seen[0]);
  CHECK(vector[0].data() == seen[1]);
  CHECK(values(map.at("a")) == filled(5, 2, 1));
  CHECK(values(vector[0]) == filled(5, 3, 2));
}

namespace {

/// Keeps the last output as a tensor.
struct Keeper {
  Tensor<int, 2> kept;
  auto forward(Context auto& ctx, View<const int, 1> x) {
    const auto output = make(ctx, x, 2, 1);
    kept = output;
    return output;
  }
};

/// Returns a tensor that shows an output, and keeps another one that does.
struct Sharer {
  Tensor<int, 2> kept;
  auto forward(Context auto& ctx, View<const int, 1> x) {
    const auto output = make(ctx, x, 2, 1);
    kept = output;
    return Tensor<int, 2>(output);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a tensor that a model keeps of an output stays valid and is not the result", M, Keeper, Sharer) {
  ParallelModel model{M{}, host_devices(2)};
  auto result = model(count_to(5));
  for (int& x : result) x = -1;
  CHECK(values(model.replica(0).model().kept) == filled(3, 2, 1));
  CHECK(values(model.replica(1).model().kept) == std::vector{30, 31, 40, 41});
  CHECK(values(model(count_to(4))) == filled(4, 2, 1));
  CHECK(values(result) == std::vector<int>(10, -1));
  CHECK(values(model.replica(1).model().kept) == std::vector{20, 21, 30, 31});
}

TEST_CASE("scratch that is returned is copied") {
  const int* seen = nullptr;
  ParallelModel model{[&seen](Context auto& ctx, View<const int, 1> x) {
                        const auto scratch = fanout::empty<int>(ctx, x.extent(0), 2);
                        fill(scratch, x, 4);
                        seen = scratch.data();
                        return scratch;
                      },
                      host_devices(1)};
  const auto result = model(count_to(3));
  CHECK(result.data() != seen);
  CHECK(values(result) == filled(3, 2, 4));
}

TEST_CASE("with no rows the result has the right trailing extents") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        return std::tuple{make(ctx, x, 4, 1), Tensor<float, 3>(x.extent(0), 5, 6), x};
                      },
                      host_devices(3)};
  const auto [output, tensor, view] = model(Tensor<int, 1>(0));
  CHECK(output.extents() == fanout::Extents<2>{0, 4});
  CHECK(tensor.extents() == fanout::Extents<3>{0, 5, 6});
  CHECK(view.extents() == fanout::Extents<1>{0});
}

TEST_CASE("rows of no elements are gathered") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1>) { return fanout::output<int>(ctx, 0); },
                      host_devices(2)};
  CHECK(model(count_to(3)).extents() == fanout::Extents<2>{3, 0});
}

TEST_CASE("shards may return more or fewer rows than they were passed") {
  ParallelModel model{[](View<const int, 1> x) {
                        std::vector<int> even;
                        for (const int i : x) {
                          if (i % 2 == 0) even.push_back(i);
                        }
                        return even;
                      },
                      host_devices(3)};
  CHECK(model(count_to(8)) == std::vector{0, 2, 4, 6});
}

TEST_CASE("scalars become one value per shard, also with one device") {
  const auto scalars = [](Context auto& ctx, View<const int, 1> x) {
    return std::tuple{static_cast<double>(x[0]), ctx.rank() == 1, static_cast<Color>(ctx.rank()),
                      std::complex<float>(1, static_cast<float>(x[0]))};
  };
  ParallelModel two{scalars, host_devices(2)};
  const auto [numbers, flags, colors, complex] = two(count_to(4));
  static_assert(std::is_same_v<decltype(numbers), const Tensor<double, 1>>);
  static_assert(std::is_same_v<decltype(flags), const Tensor<bool, 1>>);
  static_assert(std::is_same_v<decltype(colors), const Tensor<Color, 1>>);
  static_assert(std::is_same_v<decltype(complex), const Tensor<std::complex<float>, 1>>);
  CHECK(values(numbers) == std::vector{0., 2.});
  CHECK(values(flags) == std::vector{false, true});
  CHECK(values(colors) == std::vector{Color::red, Color::green});
  CHECK(values(complex) == std::vector<std::complex<float>>{{1, 0}, {1, 2}});

  ParallelModel one{scalars, host_devices(1)};
  CHECK(values(std::get<0>(one(count_to(4)))) == std::vector{0.});
}

TEST_CASE("strings become a vector of one text per shard") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1>) {
                        const std::string_view name = ctx.rank() == 0 ? "zero" : "one";
                        return std::pair{std::string("a text of more letters than fit: ") + std::string(name), name};
                      },
                      host_devices(2)};
  const auto [texts, names] = model(count_to(2));
  static_assert(std::is_same_v<decltype(texts), const std::vector<std::string>>);
  CHECK(texts ==
        std::vector<std::string>{"a text of more letters than fit: zero", "a text of more letters than fit: one"});
  CHECK(names == std::vector<std::string>{"zero", "one"});
}

TEST_CASE("vectors and spans of scalars, of strings and of structs are put one after the other") {
  ParallelModel model{[](View<const int, 1> x) {
                        std::vector<std::string> texts;
                        std::vector<Box> boxes;
                        std::vector<bool> odd;
                        for (const int i : x) {
                          texts.push_back(std::to_string(i));
                          boxes.push_back({i, i + 1});
                          odd.push_back(i % 2 == 1);
                        }
                        return std::tuple{std::vector<int>(x.begin(), x.end()), texts, boxes, odd, x.values()};
                      },
                      host_devices(2)};
  const auto [numbers, texts, boxes, odd, span] = model(count_to(3));
  static_assert(std::is_same_v<decltype(span), const std::vector<int>>);
  static_assert(std::is_same_v<decltype(odd), const std::vector<bool>>);
  CHECK(numbers == std::vector{0, 1, 2});
  CHECK(texts == std::vector<std::string>{"0", "1", "2"});
  REQUIRE(boxes.size() == 3);
  CHECK(boxes[2].right == 3);
  CHECK(odd == std::vector{false, true, false});
  CHECK(span == std::vector{0, 1, 2});
}

TEST_CASE("arrays whose trailing extents differ are refused with place, shards and extents") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x, bool wrong) {
                        return std::pair{0, make(ctx, x, wrong && ctx.rank() == 1 ? 3 : 2, 1)};
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(count_to(5), true); }), "output[1]", "[3, 2]",
             "shard 0 on host:0, rows [0, 3)", "[2, 3]", "shard 1 on host:1, rows [3, 5)"));
  CHECK(values(model(count_to(5), false).second) == filled(5, 2, 1));
}

TEST_CASE("outputs of one row size and different shapes are refused") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1>, bool wrong) {
                        return wrong && ctx.rank() == 1 ? fanout::output<int>(ctx, 3, 2)
                                                        : fanout::output<int>(ctx, 2, 3);
                      },
                      host_devices(2)};
  CHECK_THROWS_AS(model(count_to(5), true), fanout::ShapeMismatch);
  CHECK(model(count_to(5), false).extents() == fanout::Extents<3>{5, 2, 3});
}

TEST_CASE("a leaf type can define how it is gathered, and to which type") {
  ParallelModel model{[](Context auto& ctx, const Measured& x, bool wrong) {
                        return std::pair{0, Measured{x.rows, wrong && ctx.rank() == 1 ? '?' : x.unit}};
                      },
                      host_devices(2)};
  const std::vector<int> rows = model(Measured{{1, 2, 3}, 'm'}, false).second;
  CHECK(rows == std::vector{1, 2, 3});
  CHECK(message_of<fanout::ShapeMismatch>([&] { model(Measured{{1, 2, 3}, 'm'}, true); }) == "units at output[1]");
}
