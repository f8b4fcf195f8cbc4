// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives and results of maps match keys by value.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>

namespace {

enum class Metric { loss, hits };
struct Place {
  char side;
  double x;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// Reduces a map of one key, `own` of rank 0 and `other` of rank 1.
template <class K>
struct PerKey {
  K own;
  K other;
  double forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    std::map<K, double> sums;
    sums[ctx.rank() == 0 ? own : other] = static_cast<double>(x.size());
    ctx.communicator().all_reduce(sums);
    return sums.begin()->second;
  }
};

template <class K>
void check(const K& own, const K& other) {
  const fanout::Tensor<double, 1> x(5);
  const fanout::ParallelModel same{PerKey<K>{own, own}, fanout::host_devices(2)};
  CHECK(same(x)[0] == 5);
  const fanout::ParallelModel different{PerKey<K>{own, other}, fanout::host_devices(2)};
  CHECK_THROWS_AS(different(x), fanout::Error);
}

}  // namespace

TEST_CASE("a collective refuses maps whose keys differ, of any type") {
  check<std::string>("a", "b");
  check(Metric::loss, Metric::hits);
  check(1.0, 1.0 + 1e-9);
  check(1.0L, std::nextafter(1.0L, 2.0L));
  check(std::pair{1, Metric::loss}, std::pair{1, Metric::hits});
  check(Place{'a', 1}, Place{'a', 2});
  check(std::optional<int>(), std::optional<int>(0));
  check(std::array{1, 2}, std::array{2, 1});
  check(std::wstring(L"a"), std::wstring(L"b"));
}

TEST_CASE("a collective takes 0 and -0 as one key, and refuses NaN") {
  const fanout::Tensor<double, 1> x(5);
  const fanout::ParallelModel zeros{PerKey<double>{0.0, -0.0}, fanout::host_devices(2)};
  CHECK(zeros(x)[0] == 5);
  const fanout::ParallelModel nans{PerKey<double>{std::nan(""), std::nan("")}, fanout::host_devices(2)};
  CHECK_THROWS_AS(nans(x), fanout::Error);
}

TEST_CASE("results with NaN as a key are refused") {
  const auto forward = [](fanout::Context auto& ctx, fanout::View<const int, 1> v) {
    return std::map<double, int>{{ctx.rank() == 0 ? 2.0 : std::nan(""), v[0]}};
  };
  const fanout::ParallelModel model{forward, fanout::host_devices(2)};
  CHECK_THROWS_AS(model(fanout::tensor<int>({1, 2})), fanout::StructureMismatch);
}
