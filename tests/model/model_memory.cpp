// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/model/model_memory.hpp>

#include <doctest/doctest.h>

#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::host_devices;
using fanout::ParallelModel;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

const fanout::MemorySpace elsewhere{{.kind = "toy", .index = 3}};

struct Layer {
  View<const float, 1> bias;
  View<const float, 2> weight;
};
struct Network {
  std::vector<Layer> layers;
  float forward(int) const { return 0; }
};

}  // namespace

TEST_CASE("a model with an array in another memory than its device's is refused at the call, with its place") {
  const float numbers[4] = {};
  const Layer here{View<const float, 1>(numbers, 4), View<const float, 2>(numbers, 2, 2)};
  const Layer there{here.bias, View<const float, 2>(numbers, {2, 2}, elsewhere)};
  ParallelModel model{Network{{here, there}}, host_devices(2)};
  const auto call = [&] { model(1); };
  CHECK(says(message_of<fanout::DeviceMismatch>(call),
             "the model must have its parameters and buffers on device host:0 but found one of them on device toy:3",
             "at model.layers[1].weight", "expected host memory", "found the memory of toy:3"));
  model.update([&](Network& network) { network.layers[1] = here; });
  CHECK_NOTHROW(call());
  model.update([&](Network& network) { network.layers[0] = there; });
  CHECK(says(message_of<fanout::DeviceMismatch>(call), "model.layers[0].weight"));
}

TEST_CASE("a model with a non-const forward is checked before it is copied") {
  struct Counter {
    View<const float, 2> weight;
    int calls = 0;
    int forward(int) { return ++calls; }
  };
  const float numbers[4] = {};
  const ParallelModel model{Counter{View<const float, 2>(numbers, {2, 2}, elsewhere)}, host_devices(1)};
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { model(1); }), "at model.weight"));
}
