// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/visible/imbalance.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/message_of.hpp"

using fanout::cuda::GpuSize;
using fanout::cuda::imbalance_warning;
using fanout_test::says;

namespace {

using Sizes = std::vector<GpuSize>;

}  // namespace

TEST_CASE("rule 49: a GPU with less than 75% of another's memory gives a warning in the original's words") {
  CHECK(says(imbalance_warning({{0, 100, 10}, {1, 74, 10}}),
             "There is an imbalance between your GPUs. You may want to exclude GPU 1 which has less than 75% of the "
             "memory or cores of GPU 0."));
  CHECK(says(imbalance_warning({{3, 10, 10}, {5, 100, 10}, {7, 60, 10}}), "exclude GPU 3", "of GPU 5"));
}

TEST_CASE("rule 49: exactly 75% is balanced") {
  CHECK(imbalance_warning({{0, 100, 100}, {1, 75, 75}}).empty());
  CHECK(imbalance_warning({{0, 4, 132}, {1, 3, 99}}).empty());
  CHECK(!imbalance_warning({{0, 4, 132}, {1, 3, 98}}).empty());
  const std::size_t large = std::size_t{80} << 30;
  CHECK(imbalance_warning({{0, large, 1}, {1, large / 4 * 3, 1}}).empty());
  CHECK(!imbalance_warning({{0, large, 1}, {1, large / 4 * 3 - 1, 1}}).empty());
}

TEST_CASE("rule 49: memory is looked at first, and multiprocessors only if it is balanced") {
  CHECK(says(imbalance_warning({{0, 100, 10}, {1, 10, 100}}), "exclude GPU 1", "of GPU 0"));
  CHECK(says(imbalance_warning({{0, 100, 10}, {1, 99, 100}}), "exclude GPU 0", "of GPU 1"));
}

TEST_CASE("rule 49: of equal ones the first is named") {
  CHECK(says(imbalance_warning({{0, 100, 1}, {1, 10, 1}, {2, 10, 1}, {3, 100, 1}}), "exclude GPU 1", "of GPU 0"));
}

TEST_CASE("one GPU, none, and the same GPU twice are balanced") {
  CHECK(imbalance_warning({}).empty());
  CHECK(imbalance_warning({{0, 100, 10}}).empty());
  CHECK(imbalance_warning({{0, 100, 10}, {0, 100, 10}}).empty());
}
