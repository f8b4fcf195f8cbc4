// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/plan/cost_estimate.hpp>

#include <doctest/doctest.h>

using fanout::detail::CostEstimate;

TEST_CASE("shards of two sizes tell how much of their time is fixed") {
  CostEstimate estimate;
  CHECK(!estimate.is_known());
  estimate.observe(100, 600e-6);
  CHECK(estimate.is_known());
  CHECK(!estimate.knows_fixed());
  CHECK(estimate.cost().of(200) == doctest::Approx(1200e-6));
  estimate.observe(200, 700e-6);
  CHECK(estimate.knows_fixed());
  CHECK(estimate.cost().fixed == doctest::Approx(500e-6));
  CHECK(estimate.cost().per_row == doctest::Approx(1e-6));
  CHECK(estimate.fixed_part() == doctest::Approx(5.0 / 7));
}

TEST_CASE("a shard of one row does not make the time of a row longer, if nearly all of its time is fixed") {
  CostEstimate estimate;
  estimate.observe(200, 520e-6);
  for (int i = 0; i < 20; ++i) estimate.observe(1, 500.1e-6);
  CHECK(estimate.cost().of(2000) == doctest::Approx(700e-6));
}

TEST_CASE(
    "as long as the fixed part is not known, all of a shard's time may be fixed, and then as much as noise hides") {
  CostEstimate estimate;
  estimate.observe(100, 400e-6);
  CHECK(estimate.least_of(1000, true) == doctest::Approx(500e-6));
  CHECK(estimate.least_of(1000, false) == doctest::Approx(400e-6));
  CHECK(estimate.least_of(110, false) == doctest::Approx(440e-6));
  estimate.observe(200, 800e-6);
  CHECK(estimate.least_of(1000, false) == doctest::Approx(0.85 * 4e-3));
  CHECK(estimate.least_of(220, false) == doctest::Approx(880e-6));
}

TEST_CASE("a large deviation is believed at once, and small ones are averaged") {
  CostEstimate estimate;
  for (int i = 0; i < 40; ++i) estimate.observe(100, 100e-6);
  estimate.observe(100, 110e-6);
  CHECK(estimate.cost().of(100) < 101e-6);
  estimate.observe(100, 200e-6);
  CHECK(estimate.cost().of(100) == doctest::Approx(200e-6));
}

TEST_CASE("a deviation of a quarter is a large one") {
  for (const double times : {1.24, 1 / 1.24, 1.26, 1 / 1.26}) {
    CAPTURE(times);
    CostEstimate estimate;
    for (int i = 0; i < 3; ++i) estimate.observe(100, 100e-6);
    estimate.observe(100, times * 100e-6);
    const double deviation = times > 1.25 || times < 0.8 ? times - 1 : (times - 1) / 4;
    CHECK(estimate.cost().of(100) == doctest::Approx((1 + deviation) * 100e-6));
  }
}

TEST_CASE("a small deviation counts as one of the last 32 shards") {
  for (const int before : {7, 8, 15, 16, 30, 31, 32, 100}) {
    CAPTURE(before);
    CostEstimate estimate;
    for (int i = 0; i < before; ++i) estimate.observe(100, 100e-6);
    estimate.observe(100, 120e-6);
    CHECK(estimate.cost().of(100) == doctest::Approx((1 + 0.2 / (before < 32 ? before + 1 : 32)) * 100e-6));
  }
}

TEST_CASE("a size that differs by more than a quarter is another size") {
  for (const double rows : {124.0, 126.0, 81.0, 79.0}) {
    CAPTURE(rows);
    CostEstimate estimate;
    estimate.observe(100, 100e-6);
    estimate.observe(rows, rows * 1e-6);
    CHECK(estimate.knows_fixed() == (rows > 125 || rows < 80));
  }
}
