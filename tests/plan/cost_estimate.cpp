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
