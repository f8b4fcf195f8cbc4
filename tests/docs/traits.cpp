// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

// [histogram]
/// Counts values in ten bins. Shows no fields, so fanout cannot look into it.
class Histogram {
 public:
  void add(double value) { ++counts_[std::min<std::size_t>(9, static_cast<std::size_t>(value * 10))]; }
  void add(const Histogram& other) {
    for (std::size_t bin = 0; bin < 10; ++bin) counts_[bin] += other.counts_[bin];
  }
  long operator[](std::size_t bin) const { return counts_[bin]; }

 private:
  std::array<long, 10> counts_{};
};
// [/histogram]

// [halo]
/// An array of which each shard is handed its rows and up to `width` rows on either side.
struct Halo {
  fanout::View<const double, 1> array;
  std::size_t width;
};

struct HaloRows {
  fanout::View<const double, 1> rows;  // the shard's rows, and the neighbours that there are
  std::size_t first;                   // where the shard's own rows begin in them
  std::size_t size;                    // the number of its own rows
};
// [/halo]

}  // namespace

// [gather_traits]
template <class Rule>
struct fanout::gather_traits<Rule, Histogram> {
  using type = Histogram;

  static type gather(const ShardResults<Histogram>& results, const GatherTarget&, const LeafPath&) {
    Histogram all;
    for (std::size_t i = 0; i < results.size(); ++i) all.add(results[i]);
    return all;
  }
};
// [/gather_traits]

// [scatter_traits]
template <>
struct fanout::scatter_traits<Halo> {
  using piece_type = HaloRows;

  static HaloRows piece(const Halo& x, const ScatterTarget& target, const LeafPath&) {
    const std::size_t begin = target.rows.first - std::min(x.width, target.rows.first);
    const std::size_t end = std::min(target.rows.last + x.width, x.array.size());
    return {x.array.rows({begin, end}), target.rows.first - begin, target.rows.size()};
  }

  static void visit_rows(const Halo& x, int, const LeafPath& path, auto& f) { f(x.array.size(), path); }
};
template <>
inline constexpr bool fanout::splits_itself<Halo> = true;  // it has rows
// [/scatter_traits]

namespace {

TEST_CASE("a user-defined type is gathered by its gather_traits, in any tree") {
  // [use_histogram]
  const fanout::ParallelModel model{[](fanout::View<const double, 1> x) {
                                      Histogram counts;
                                      for (const double value : x) counts.add(value);
                                      return std::pair(counts, fanout::psum(x.size()));
                                    },
                                    fanout::host_devices(3)};
  const auto [histogram, size] = model(std::vector{0.11, 0.12, 0.35, 0.99, 0.31});
  // [/use_histogram]
  CHECK(size == 5);
  CHECK(histogram[1] == 2);
  CHECK(histogram[3] == 2);
  CHECK(histogram[9] == 1);
  CHECK(histogram[0] == 0);
}

TEST_CASE("a user-defined type is split by its scatter_traits, and its rows must match the other arguments") {
  // [use_halo]
  const fanout::ParallelModel smooth{[](fanout::Context auto& ctx, const HaloRows& x) {
                                       auto mean = fanout::output<double>(ctx);
                                       for (std::size_t i = 0; i < x.size; ++i) {
                                         const std::size_t at = x.first + i;
                                         const std::size_t begin = at == 0 ? 0 : at - 1;
                                         const std::size_t end = std::min(at + 2, x.rows.size());
                                         double sum = 0;
                                         for (std::size_t j = begin; j < end; ++j) sum += x.rows[j];
                                         mean[i] = sum / static_cast<double>(end - begin);
                                       }
                                       return mean;
                                     },
                                     fanout::host_devices(3)};
  const auto rod = fanout::tensor<double>({0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0});
  const auto means = smooth(Halo{rod.view(), 1});
  // [/use_halo]
  CHECK(std::vector(means.begin(), means.end()) == std::vector{1.5, 3.0, 6.0, 9.0, 12.0, 15.0, 16.5});

  const fanout::ParallelModel both{
      [](const HaloRows& x, fanout::View<const double, 1>) { return fanout::psum(x.size); }, fanout::host_devices(3)};
  CHECK(both(Halo{rod.view(), 2}, rod) == 7);
  CHECK_THROWS_AS(both(Halo{rod.view(), 2}, std::vector{1.0}), fanout::ShapeMismatch);
  const std::tuple nested(Halo{rod.view(), 1}, 5);
  const fanout::ParallelModel inside{[](const auto& x) { return fanout::psum(std::get<0>(x).size); },
                                     fanout::host_devices(2)};
  CHECK(inside(nested) == 7);
}

}  // namespace
