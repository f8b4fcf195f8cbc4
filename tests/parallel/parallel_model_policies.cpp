// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which devices run a model and which rows each of them gets: device sources and splits together.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/environment.hpp"
#include "support/message_of.hpp"
#include "support/toy_device.hpp"

using fanout::AllVisible;
using fanout::ChunkSplit;
using fanout::Context;
using fanout::FirstAvailable;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::InvalidArgument;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::Tensor;
using fanout::View;
using fanout::WeightedSplit;
using fanout_test::count_to;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

/// A kind of device of which the machine has none.
struct Absent : ToyDevice {
  static std::vector<Absent> visible() { return {}; }
};

/// Which device ran which rows, as `host:0[0, 3)`, and the rows themselves.
struct Tell {
  auto forward(Context auto& ctx, View<const int, 1> x) const {
    auto rows = fanout::output<int>(ctx);
    std::copy(x.begin(), x.end(), rows.begin());
    return std::pair{to_string(ctx.device().id()) + to_string(ctx.rows()), rows};
  }
};

using Texts = std::vector<std::string>;

/// What each shard tells of a call with so many rows; checks that the rows come back.
template <class Model>
Texts shards_of(const Model& model, std::size_t rows) {
  const auto x = count_to(rows);
  const auto [texts, gathered] = model(x);
  CHECK(std::vector<int>(gathered.begin(), gathered.end()) == std::vector<int>(x.begin(), x.end()));
  return texts;
}

// [own_split]
/// Blocks of at most 64 rows, dealt to the devices in turn, so that a stretch of rows that take longer is spread out.
struct DealtBlocks {
  fanout::Plan operator()(std::size_t rows, std::size_t devices) const {
    if (rows == 0) return fanout::EvenSplit{}(rows, devices);
    fanout::Plan plan;
    for (std::size_t begin = 0; begin < rows; begin += 64)
      plan.add({.rows = {begin, std::min(begin + 64, rows)}, .device = begin / 64 % devices});
    return plan;
  }
};
// [/own_split]

}  // namespace

TEST_CASE("the documentation's ways to choose devices and rows") {
  const fanout_test::EnvironmentVariable count("FANOUT_HOST_DEVICES", "3");
  using Model = Tell;
  const Model original;
  // [devices]
  fanout::ParallelModel every{original};                                                   // all host devices
  fanout::ParallelModel some{original, fanout::host_devices({0, 2})};                      // host:0 and host:2
  fanout::ParallelModel<Model, fanout::Indices<fanout::HostDevice, 0, 2>> same{original};  // the same, as a type
  // [/devices]
  // [splits]
  const auto devices = fanout::host_devices(3);
  fanout::ParallelModel chunks{original, devices, fanout::Options{.split = fanout::ChunkSplit{}}};  // as torch.chunk
  fanout::ParallelModel weighted{original, devices, fanout::Options{.split = fanout::WeightedSplit{50, 30, 20}}};
  fanout::ParallelModel dealt{original, devices, fanout::Options{.split = DealtBlocks{}}};
  // [/splits]
  CHECK(shards_of(every, 4) == Texts{"host:0[0, 2)", "host:1[2, 3)", "host:2[3, 4)"});
  CHECK(shards_of(some, 4) == Texts{"host:0[0, 2)", "host:2[2, 4)"});
  CHECK(shards_of(same, 4) == shards_of(some, 4));
  CHECK(shards_of(chunks, 4) == Texts{"host:0[0, 2)", "host:1[2, 4)"});
  CHECK(shards_of(weighted, 10) == Texts{"host:0[0, 5)", "host:1[5, 8)", "host:2[8, 10)"});
  CHECK(shards_of(dealt, 200) == Texts{"host:0[0, 64)", "host:1[64, 128)", "host:2[128, 192)", "host:0[192, 200)"});
  CHECK(shards_of(dealt, 0).size() == 3);
}

TEST_CASE("splits share rows out over devices of different kinds") {
  const auto mixed = host_devices(2) | AllVisible<ToyDevice>{}.select();
  CHECK(shards_of(ParallelModel{Tell{}, mixed}, 9) ==
        Texts{"host:0[0, 3)", "host:1[3, 5)", "toy:0[5, 7)", "toy:1[7, 9)"});
  CHECK(shards_of(ParallelModel{Tell{}, mixed, Options{.split = ChunkSplit{}}}, 9) ==
        Texts{"host:0[0, 3)", "host:1[3, 6)", "toy:0[6, 9)"});
  const ParallelModel weighted{Tell{}, mixed, Options{.split = WeightedSplit{0, 1, 6, 3}}};
  CHECK(shards_of(weighted, 10) == Texts{"host:1[0, 1)", "toy:0[1, 7)", "toy:1[7, 10)"});
  CHECK(shards_of(weighted, 0) == Texts{"host:1[0, 0)", "toy:0[0, 0)", "toy:1[0, 0)"});
  const auto toys_first = AllVisible<ToyDevice>{}.select() | host_devices(1);
  CHECK(shards_of(ParallelModel{Tell{}, toys_first}, 3) == Texts{"toy:0[0, 1)", "toy:1[1, 2)", "host:0[2, 3)"});
}

TEST_CASE("a model on FirstAvailable runs only on the first kind") {
  const fanout_test::EnvironmentVariable count("FANOUT_HOST_DEVICES", "2");
  const ParallelModel<Tell, FirstAvailable<ToyDevice, HostDevice>> on_toys{Tell{}};
  CHECK(shards_of(on_toys, 4) == Texts{"toy:0[0, 2)", "toy:1[2, 4)"});
  const ParallelModel<Tell, FirstAvailable<Absent, HostDevice>> on_hosts{Tell{}};
  CHECK(shards_of(on_hosts, 4) == Texts{"host:0[0, 2)", "host:1[2, 4)"});
  CHECK_THROWS_AS((ParallelModel<Tell, FirstAvailable<Absent>>{Tell{}}), fanout::InvalidDeviceId);
}

TEST_CASE("a split may give a device several shards, in any order, and have more shards than devices") {
  const auto back_and_forth = [](std::size_t rows, std::size_t devices) {
    if (rows == 0) return fanout::EvenSplit{}(rows, devices);
    Plan plan;
    for (std::size_t i = 0; i < rows; ++i) plan.add({.rows = {i, i + 1}, .device = devices - 1 - i / 2 % devices});
    return plan;
  };
  const ParallelModel model{Tell{}, host_devices(2), Options{.split = back_and_forth}};
  CHECK(shards_of(model, 5) == Texts{"host:1[0, 1)", "host:1[1, 2)", "host:0[2, 3)", "host:0[3, 4)", "host:1[4, 5)"});
  CHECK(shards_of(model, 40).size() == 40);

  const ParallelModel counting{[](Context auto& ctx, View<const int, 1>) { return 100 * ctx.size() + ctx.rank(); },
                               host_devices(2), Options{.split = back_and_forth}};
  const auto ranks = counting(count_to(3));
  CHECK(std::vector<std::size_t>(ranks.begin(), ranks.end()) == std::vector<std::size_t>{300, 301, 302});
}

TEST_CASE("weights that do not fit the devices are refused when the model is made") {
  CHECK(says(message_of<InvalidArgument>([] {
               ParallelModel{Tell{}, host_devices(2), Options{.split = WeightedSplit{50, 30, 20}}};
             }),
             "wrong number of weights", "each of the 2 devices", "found 3"));
  const fanout_test::EnvironmentVariable count("FANOUT_HOST_DEVICES", "4");
  CHECK_THROWS_AS((ParallelModel{Tell{}, Options{.split = WeightedSplit{1, 1}}}), InvalidArgument);
}

TEST_CASE("a split policy without a valid plan for zero rows is refused when the model is made") {
  const auto none = [](std::size_t, std::size_t) { return Plan{}; };
  CHECK(says(message_of<InvalidArgument>([&] {
               ParallelModel{Tell{}, host_devices(2), Options{.split = none}};
             }),
             "invalid plan", "cover [0, 0) on devices 0 to 1", "mend the split policy"));
  const auto too_many = [](std::size_t rows, std::size_t) { return Plan{{{0, rows}, 0}, {{rows, rows}, 5}}; };
  CHECK_THROWS_AS((ParallelModel{Tell{}, host_devices(2), Options{.split = too_many}}), InvalidArgument);
}

TEST_CASE("a call with nothing to split runs on the main device, whatever its weight") {
  const ParallelModel model{[](Context auto& ctx, int) { return to_string(ctx.device().id()); }, host_devices(2),
                            Options{.split = WeightedSplit{0, 1}}};
  CHECK(model(3) == Texts{"host:0"});
}
