// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What must hold for every tree, every split and every number of devices, tried on random trees of random types.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/random_split.hpp"
#include "support/random_tree.hpp"

using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::below;
using fanout_test::fill;
using fanout_test::map_arrays;
using fanout_test::Random;
using fanout_test::RandomSplit;
using fanout_test::SomeTree;

namespace {

constexpr std::uint32_t first_seed = 20261120;
constexpr std::uint32_t types = 16;
constexpr std::uint32_t rounds = 72;  // for each type and each of 9 device counts: 10,368 trees in all

template <class X>
std::map<std::string, std::string> contents(const X& tree);

/// What one row of a vector shows.
template <class T>
std::string row_text(const T& row) {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::string(reinterpret_cast<const char*>(&row), sizeof row);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return row + '\n';
  } else {
    std::string text;
    for (const auto& [path, shown] : contents(row)) text += path + '=' + shown + '\n';
    return text;
  }
}

/// What each array of a tree shows, by its place; in a map, since the order of hashed trees does not count.
template <class X>
std::map<std::string, std::string> contents(const X& tree) {
  std::map<std::string, std::string> found;
  fanout::visit_arrays(tree, fanout::LeafPath("tree"), [&]<class A>(const A& array, const fanout::LeafPath& path) {
    std::string& text = found[to_string(path)];
    if constexpr (requires { array.extents(); }) text = to_string(array.extents());
    for (std::size_t i = 0; i < array.size(); ++i) text += row_text(array.data()[i]);
  });
  return found;
}

/// A leaf as it would be handed in whole: structs are split only if they do not own their arrays.
struct Show {
  template <class T, std::size_t R>
  View<const T, R> operator()(const Tensor<T, R>& tensor) const {
    return tensor;
  }
  template <class T>
  std::span<const T> operator()(const std::vector<T>& vector) const {
    return vector;
  }
};

/// The leaf, made anew.
struct Own {
  template <class T, std::size_t R>
  Tensor<T, R> operator()(const View<const T, R>& view) const {
    return Tensor<T, R>(view);
  }
  template <class T>
  std::vector<T> operator()(std::span<const T> span) const {
    return {span.begin(), span.end()};
  }
};

/// A function of each row of the leaf and of its place in the batch. Tensors are outputs where `make` makes such.
template <class Make>
struct ChangeRows {
  std::size_t first_row;
  const Make& make;

  template <class T>
  static T changed(const T& x, std::size_t row) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(static_cast<float>(x) * 0.7F + static_cast<float>(row));
    } else {
      return map_arrays(x, [row]<class E>(const std::vector<E>& inside) {
        std::vector<E> made;
        for (const E& element : inside) made.push_back(changed(element, row));
        return made;
      });
    }
  }
  static std::string changed(const std::string& x, std::size_t row) { return x + " in row " + std::to_string(row); }

  template <class T, std::size_t R>
  Tensor<T, R> operator()(const View<const T, R>& view) const {
    auto made = make(view);
    for (std::size_t row = 0; row < view.extent(0); ++row) {
      const std::size_t size = view.size() / view.extent(0);
      for (std::size_t i = row * size; i < (row + 1) * size; ++i) {
        made.data()[i] = changed(view.data()[i], first_row + row);
      }
    }
    return made;
  }
  template <class T>
  std::vector<T> operator()(std::span<const T> span) const {
    std::vector<T> made;
    for (std::size_t row = 0; row < span.size(); ++row) made.push_back(changed(span[row], first_row + row));
    return made;
  }
};
template <class Make>
ChangeRows(std::size_t, const Make&) -> ChangeRows<Make>;

/// Calls `make(trailing extents...)`.
template <class T, std::size_t R, class Make>
auto with_trailing(const View<const T, R>& view, const Make& make) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return make(view.extent(I + 1)...); }
  (std::make_index_sequence<R - 1>());
}

const auto in_outputs = [](auto& ctx) {
  return [&ctx]<class T, std::size_t R>(const View<const T, R>& view) {
    return with_trailing(view, [&](auto... trailing) { return fanout::output<T>(ctx, trailing...); });
  };
};
const auto in_tensors = []<class T, std::size_t R>(const View<const T, R>& view) {
  return Tensor<T, R>::uninitialized(view.extents(), {});
};

/// Each of the splits in turn.
Options split_in_turn(std::uint32_t round, std::uint32_t seed, int devices) {
  switch (round % 4) {
    case 0:
      return {};
    case 1:
      return {.split = fanout::ChunkSplit{}};
    case 2: {
      Random random(seed);
      std::vector<double> weights{1};
      while (weights.size() < static_cast<std::size_t>(devices)) {
        weights.push_back(static_cast<double>(below(random, 5)));
      }
      return {.split = fanout::WeightedSplit(weights)};
    }
    default:
      return {.split = RandomSplit{seed}};
  }
}

/// Calls `check(model options, devices, shown tree, tree)` for random trees of the type. Those of wide types are split
/// on each of four axes in turn.
template <class X, bool Wide, class Check>
void for_each_tree(std::uint32_t type, const Check& check) {
  for (int devices = 1; devices <= 9; ++devices) {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint32_t seed = first_seed + 10000 * type + 1000 * static_cast<std::uint32_t>(devices) + round;
      Random random(seed);
      Options options = split_in_turn(round, seed, devices);
      if (Wide) options.axis = std::array{0, 1, -1, -2}[round / 4 % 4];
      X tree;
      fill(tree, random, below(random, 20), options.axis);
      CAPTURE(seed);
      CAPTURE(type);
      CAPTURE(devices);
      CAPTURE(round);
      CAPTURE(options.axis);
      check(std::move(options), devices, map_arrays(tree, Show()), tree);
    }
  }
}

template <bool Wide, class Check, std::uint32_t... Type>
void for_each_type(const Check& check, std::integer_sequence<std::uint32_t, Type...>) {
  (for_each_tree<SomeTree<Type, 1 + Type % 5, Wide>, Wide>(Type, check), ...);
}
template <class Check>
void for_each_type(const Check& check) {
  for_each_type<false>(check, std::make_integer_sequence<std::uint32_t, types>());
}

}  // namespace

TEST_CASE("random trees are split and gathered back bit by bit, whatever the split, the axis and the devices") {
  std::size_t trees = 0;
  const auto check = [&](Options options, int devices, const auto& shown, const auto& tree) {
    const ParallelModel model{[](const auto& piece, const auto& whole) {
                                return std::pair{map_arrays(piece, Own()), fanout::first(whole)};
                              },
                              host_devices(devices), std::move(options)};
    const auto back = model(shown, fanout::broadcast(tree));
    static_assert(std::is_same_v<decltype(back.first), std::remove_cvref_t<decltype(tree)>>);
    static_assert(std::is_same_v<decltype(back.second), std::remove_cvref_t<decltype(tree)>>);
    const auto expected = contents(tree);
    CHECK(contents(back.first) == expected);
    CHECK(contents(back.second) == expected);
    ++trees;
  };
  for_each_type<false>(check, std::make_integer_sequence<std::uint32_t, types / 2>());
  for_each_type<true>(check, std::make_integer_sequence<std::uint32_t, types / 2>());
  CHECK(trees >= 10000);
}

TEST_CASE("a function of each row of a random tree gives bit by bit what one pass over all rows gives") {
  for_each_type([](Options options, int devices, const auto& shown, const auto&) {
    const ParallelModel model{[](fanout::Context auto& ctx, const auto& piece) {
                                const auto make = in_outputs(ctx);
                                return map_arrays(piece, ChangeRows{ctx.rows().first, make});
                              },
                              host_devices(devices), std::move(options)};
    CHECK(contents(model(shown)) == contents(map_arrays(shown, ChangeRows{0, in_tensors})));
  });
}
