// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules 1 to 15 of docs/conformance.md: how rows are shared out.
#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "conformance/shards.hpp"
#include "support/message_of.hpp"

using conformance::count_to;
using conformance::look_at_shards;
using conformance::Tell;
using conformance::values;
using fanout::ChunkSplit;
using fanout::EvenSplit;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Sizes = std::vector<std::size_t>;
using Texts = std::vector<std::string>;

Sizes sizes(const Plan& plan) {
  Sizes sizes;
  for (const fanout::Shard& shard : plan) sizes.push_back(shard.rows.size());
  return sizes;
}

struct Chunks {
  std::size_t devices;
  std::size_t rows;
  Sizes sizes;
};

}  // namespace

TEST_CASE("rule 1: ChunkSplit makes chunks of ceil(n / k) rows, and the last one takes the remainder") {
  for (std::size_t k = 1; k <= 8; ++k) {
    for (std::size_t n = 1; n <= 128; ++n) {
      const std::size_t size = (n + k - 1) / k;
      Sizes expected(n / size, size);
      if (n % size != 0) expected.push_back(n % size);
      CHECK(sizes(ChunkSplit{}(n, k)) == expected);
    }
  }
}

TEST_CASE("rule 2: ChunkSplit makes the same chunks as PyTorch") {
  const std::vector<Chunks> table{{2, 1, {1}},
                                  {2, 3, {2, 1}},
                                  {2, 5, {3, 2}},
                                  {2, 30, {15, 15}},
                                  {2, 10, {5, 5}},
                                  {3, 4, {2, 2}},
                                  {3, 5, {2, 2, 1}},
                                  {3, 7, {3, 3, 1}},
                                  {3, 10, {4, 4, 2}},
                                  {3, 100, {34, 34, 32}},
                                  {4, 5, {2, 2, 1}},
                                  {4, 6, {2, 2, 2}},
                                  {4, 7, {2, 2, 2, 1}},
                                  {4, 9, {3, 3, 3}},
                                  {4, 10, {3, 3, 3, 1}},
                                  {4, 17, {5, 5, 5, 2}},
                                  {4, 30, {8, 8, 8, 6}},
                                  {5, 6, {2, 2, 2}},
                                  {5, 11, {3, 3, 3, 2}},
                                  {5, 12, {3, 3, 3, 3}},
                                  {8, 9, {2, 2, 2, 2, 1}},
                                  {8, 17, {3, 3, 3, 3, 3, 2}},
                                  {8, 100, {13, 13, 13, 13, 13, 13, 13, 9}}};
  for (const Chunks& row : table) CHECK(sizes(ChunkSplit{}(row.rows, row.devices)) == row.sizes);
}

TEST_CASE("rules 3 and 128: fewer rows than devices run on the first of these, and the others are idle") {
  const ParallelModel model{fanout::per_replica(Tell{}), host_devices(4)};
  CHECK(model(count_to(2)) == Texts{"host:0[0, 1)", "host:1[1, 2)"});
  CHECK_FALSE(model.replica(1).shares_original());
  CHECK(model.replica(2).shares_original());  // no replica was made
  CHECK(model.replica(3).shares_original());
}

TEST_CASE("rule 4: nine rows keep eight devices busy, unless ChunkSplit is asked for") {
  CHECK(sizes(EvenSplit{}(9, 8)) == Sizes{2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(sizes(ChunkSplit{}(9, 8)).size() == 5);
  const ParallelModel model{Tell{}, host_devices(8)};
  CHECK(model.plan(9) == EvenSplit{}(9, 8));
}

TEST_CASE("rule 5: without rows every replica runs, and the result has no rows and the right trailing extents") {
  const auto shard_and_rows = [](fanout::Context auto& ctx, View<const float, 2> x) {
    return std::pair{x.extent(0), fanout::output<float>(ctx, x.extent(1))};
  };
  const fanout::AnySplit splits[]{EvenSplit{}, ChunkSplit{}};
  for (const fanout::AnySplit& split : splits) {
    const ParallelModel model{shard_and_rows, host_devices(3), fanout::Options{.split = split}};
    const auto [rows, result] = model(Tensor<float, 2>(0, 4));
    CHECK(std::vector<std::size_t>(rows.begin(), rows.end()) == Sizes{0, 0, 0});
    CHECK(result.extents() == fanout::Extents<2>{0, 4});
  }
}

TEST_CASE("rule 6: a number beside a batch is passed whole to every replica") {
  const double number = 0.5;
  look_at_shards(
      2,
      [&](std::size_t, View<const int, 1> x, const double& whole) {
        CHECK(x.size() == 2);
        CHECK(&whole == &number);
      },
      count_to(4), number);
}

TEST_CASE("rule 7: any axis can be the batch axis, also counted from the last, for each array") {
  Tensor<int, 2> x(2, 5);
  for (std::size_t i = 0; i < 10; ++i) x.data()[i] = static_cast<int>(i);
  const auto columns = [](View<const int, 2> part) { return std::pair{part.extent(1), part}; };
  for (const int axis : {1, -1}) {
    const ParallelModel model{columns, host_devices(2), fanout::Options{.axis = axis}};
    const auto [extents, all] = model(x);
    CHECK(std::vector<std::size_t>(extents.begin(), extents.end()) == Sizes{3, 2});
    CHECK(all.extents() == x.extents());
    CHECK(all(1, 4) == 9);
  }
  const ParallelModel for_one{[](View<const int, 2> part, View<const int, 1>) { return fanout::concat<1>(part); },
                              host_devices(2)};
  CHECK(for_one(fanout::split<-1>(x), count_to(5))(1, 4) == 9);
  const ParallelModel none{columns, host_devices(2), fanout::Options{.axis = 2}};
  CHECK(
      says(message_of<fanout::ShapeMismatch>([&] { none(x); }), "no such axis", "input[0]", "from -2 to 1", "axis 2"));
}

TEST_CASE("rule 8: explicit chunks are a plan, which must have the rows and the devices that there are") {
  const auto x = count_to(6);
  const auto devices = host_devices(2);
  const Plan uneven{{.rows = {0, 5}, .device = 0}, {.rows = {5, 6}, .device = 1}};
  const auto replicas = fanout::replicate(Tell{}, devices);
  CHECK(fanout::gather(fanout::apply(replicas, fanout::scatter(uneven, x))) == Texts{"host:0[0, 5)", "host:1[5, 6)"});

  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)fanout::scatter(uneven, count_to(7)); }), "6 rows", "7"));
  const Plan elsewhere{{.rows = {0, 6}, .device = 2}};
  CHECK(says(message_of<fanout::InvalidArgument>([&] { (void)fanout::apply(replicas, fanout::scatter(elsewhere, x)); }),
             "devices 0 to 1", "device 2"));

  const ParallelModel model{Tell{}, devices, fanout::Options{.split = fanout::WeightedSplit{5, 1}}};
  CHECK(model(x) == Texts{"host:0[0, 5)", "host:1[5, 6)"});
  CHECK(says(message_of<fanout::InvalidArgument>([&] {
               ParallelModel{Tell{}, devices, fanout::Options{.split = fanout::WeightedSplit{5, 1, 1}}};
             }),
             "wrong number of weights", "each of the 2 devices", "found 3"));
}

TEST_CASE("rules 9 and 12: rows on the host are const views of the input, in its layout and never copied") {
  const Tensor<float, 3> x(5, 2, 3);
  look_at_shards(
      2,
      [&](std::size_t rank, auto rows) {
        static_assert(std::is_same_v<decltype(rows), View<const float, 3>>);
        CHECK(rows.data() == x.data() + rank * 3 * 2 * 3);
        CHECK(rows.extents() == fanout::Extents<3>{rank == 0 ? 3U : 2U, 2, 3});
      },
      x);
}

TEST_CASE("rule 9: forward writes the rows of an inout argument in place") {
  auto x = count_to(4);
  const ParallelModel model{[](View<int, 1> rows) {
                              for (int& value : rows) value *= 10;
                            },
                            host_devices(2)};
  model(fanout::inout(x));
  CHECK(values(x) == std::vector{0, 10, 20, 30});
}

TEST_CASE("rule 13: no devices, and a negative index, are refused when the set is made") {
  CHECK(says(message_of<fanout::InvalidDeviceId>([] { (void)host_devices(std::vector<int>{}); }), "Invalid device id",
             "at least one device", "found none"));
  CHECK(says(message_of<fanout::InvalidDeviceId>([] {
               (void)host_devices({0, -1});
             }),
             "Invalid device id", "found -1"));
}
