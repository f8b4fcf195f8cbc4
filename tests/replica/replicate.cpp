// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/device/all_visible.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/replica/replicate.hpp>

#include "support/toy_device.hpp"

using fanout_test::ToyDevice;

namespace {

struct Model {
  int value = 4;
};

}  // namespace

TEST_CASE("replicate makes a replica on each device and copies nothing") {
  const auto replicas = fanout::replicate(Model{5}, fanout::host_devices(3));
  REQUIRE(replicas.size() == 3);
  CHECK(replicas.original().model.value == 5);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(replicas[i].device() == replicas.devices()[i]);
    CHECK(&replicas[i].model() == &replicas.original().model);
  }
}

TEST_CASE("replicas on a mixed set are visited in its order, each as its own type") {
  const auto devices = fanout::AllVisible<ToyDevice>{}.select() | fanout::host_devices(1);
  const auto replicas = fanout::replicate(Model{}, devices);
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

TEST_CASE("replicate moves a move-only model and copies an lvalue") {
  const auto replicas = fanout::replicate(std::make_unique<int>(6), fanout::host_devices(2));
  CHECK(*replicas[1].model() == 6);
  Model kept{7};
  const auto copies = fanout::replicate(kept, fanout::host_devices(1));
  kept.value = 8;
  CHECK(copies[0].model().value == 7);
}
