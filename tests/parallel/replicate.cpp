// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <vector>

#include <fanout/device/all_visible.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/parallel/replicate.hpp>

#include "support/toy_device.hpp"

using fanout_test::ToyDevice;

namespace {

struct Model {
  int value = 4;
};

}  // namespace

TEST_CASE("replicate makes a replica on each device and copies nothing") {
  const fanout::Original<Model> original{.model = {}};
  const auto replicas = fanout::replicate(original, fanout::host_devices(3));
  REQUIRE(replicas.size() == 3);
  CHECK(&replicas.original() == &original);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(replicas[i].device() == replicas.devices()[i]);
    CHECK(&replicas[i].model() == &original.model);
  }
}

TEST_CASE("replicas on a mixed set are visited in its order, each as its own type") {
  const fanout::Original<Model> original{.model = {}};
  const auto devices = fanout::AllVisible<ToyDevice>{}.select() | fanout::host_devices(1);
  const auto replicas = fanout::replicate(original, devices);
  REQUIRE(replicas.size() == 3);
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < 3; ++i) {
    replicas.visit(i, [&seen, i](const auto& replica) {
      using D = std::remove_cvref_t<decltype(replica.device())>;
      CHECK(std::is_same_v<D, ToyDevice> == (i < 2));
      seen.push_back(to_string(replica.device().id()));
    });
  }
  CHECK(seen == std::vector<std::string>{"toy:0", "toy:1", "host:0"});
}
