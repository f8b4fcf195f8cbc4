// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What must hold for every shape, every split and every number of devices, tried on random ones.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/random_split.hpp"

using fanout::Context;
using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::below;
using fanout_test::Random;
using fanout_test::RandomSplit;

namespace {

constexpr std::uint32_t first_case_seed = 20240607;
constexpr int cases_per_device_count = 300;

/// Random bits, which as floats hold infinities and NaNs of all kinds.
Tensor<float, 3> bits(Random& random, std::size_t rows) {
  Tensor<float, 3> tensor(rows, 1 + below(random, 4), below(random, 4));
  for (float& x : tensor) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(&x, &word, sizeof x);
  }
  return tensor;
}

template <std::size_t R>
bool same_bits(const Tensor<float, R>& a, const Tensor<float, R>& b) {
  return a.extents() == b.extents() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Returns what it is given, as a view, as an output and as a copy, in a tree.
struct Identity {
  auto forward(Context auto& ctx, View<const float, 3> x, std::span<const std::string> names) const {
    auto output = fanout::output<float>(ctx, x.extent(1), x.extent(2));
    if (!x.empty()) std::memcpy(output.data(), x.data(), x.size() * sizeof(float));
    std::map<int, Tensor<float, 3>> map;
    map.emplace(1, Tensor<float, 3>(x));
    map.emplace(2, output);
    return std::tuple{x, output, std::move(map), names};
  }
};

/// A function of each row, of its place in the batch and of its random numbers.
struct RowWise {
  static float of_row(const float* row, std::size_t size, std::size_t place, double noise) {
    float result = static_cast<float>(place) + static_cast<float>(noise);
    for (std::size_t k = 0; k < size; ++k) result = result * 0.75F + row[k];
    return result;
  }
  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto output = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      output[i] = of_row(x.data() + i * x.extent(1), x.extent(1), ctx.rows().first + i, ctx.random(i).uniform());
    }
    return output;
  }
};

Options options(bool even, std::uint32_t seed) {
  return even ? Options{.seed = 9} : Options{.split = RandomSplit{seed}, .seed = 9};
}

}  // namespace

TEST_CASE("whatever is split is gathered back bit by bit") {
  for (int devices = 1; devices <= 9; ++devices) {
    for (int i = 0; i < cases_per_device_count; ++i) {
      const std::uint32_t seed =
          first_case_seed + 1000 * static_cast<std::uint32_t>(devices) + static_cast<std::uint32_t>(i);
      CAPTURE(devices);
      CAPTURE(seed);
      Random random(seed);
      const std::size_t rows = below(random, 24);
      const auto x = bits(random, rows);
      std::vector<std::string> names;
      for (std::size_t row = 0; row < rows; ++row) names.push_back(std::to_string(random()));
      ParallelModel model{Identity{}, host_devices(devices), options(i % 2 == 0, seed)};
      const auto [view, output, map, texts] = model(x, names);
      CHECK(same_bits(view, x));
      CHECK(same_bits(output, x));
      CHECK(same_bits(map.at(1), x));
      CHECK(same_bits(map.at(2), x));
      CHECK(texts == names);
    }
  }
}

TEST_CASE("a function of each row gives bit by bit what a loop gives") {
  for (int devices = 1; devices <= 9; ++devices) {
    for (int i = 0; i < cases_per_device_count; ++i) {
      const std::uint32_t seed =
          first_case_seed + 1000 * static_cast<std::uint32_t>(devices) + static_cast<std::uint32_t>(i);
      CAPTURE(devices);
      CAPTURE(seed);
      Random random(seed);
      Tensor<float, 2> x(below(random, 40), below(random, 5));
      for (float& value : x) value = static_cast<float>(below(random, 1000)) / 7.0F;
      Tensor<float, 1> expected(x.extent(0));
      for (std::size_t row = 0; row < x.extent(0); ++row) {
        const double noise = fanout::RandomStream(9, 0, row).uniform();
        expected[row] = RowWise::of_row(x.data() + row * x.extent(1), x.extent(1), row, noise);
      }
      ParallelModel model{RowWise{}, host_devices(devices), options(i % 2 == 0, seed)};
      CHECK(same_bits(model(x), expected));
    }
  }
}
