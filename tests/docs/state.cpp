// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fanout/state.hpp>

#include "observe/python.hpp"

namespace {

using fanout::Tensor;
using namespace fanout::literals;

struct Layer {
  Tensor<float, 2> weight;  // [out, in]
  Tensor<float, 1> bias;    // [out]
};

struct Network {
  std::vector<Layer> layers;
  auto forward(fanout::View<const float, 2> x) const { return x.extent(0) * layers.size(); }
};

Network some_network(float value) {
  return {{{Tensor<float, 2>::full({3, 4}, value), Tensor<float, 1>::full({3}, value)}}};
}

/// What an optimizer remembers.
struct Momentum {
  double rate = 0;
  Network velocity;
};

/// The working directory of the test, with files of its own.
struct InStateFolder {
  fanout_test::TestFolder folder;
  std::filesystem::path before = std::filesystem::current_path();
  InStateFolder() { std::filesystem::current_path(folder / ""); }
  InStateFolder(const InStateFolder&) = delete;
  InStateFolder& operator=(const InStateFolder&) = delete;
  ~InStateFolder() { std::filesystem::current_path(before); }
};

}  // namespace

TEST_CASE("a run is saved, and goes on from the file") {
  const InStateFolder here;
  const auto make = [](float value) { return fanout::ParallelModel{some_network(value), fanout::host_devices(2)}; };
  {
    auto model = make(1);
    Momentum momentum{0.5, some_network(2)};
    std::size_t epoch = 7;
    // [save]
    fanout::save("run.safetensors",
                 fanout::dict("model"_k = std::ref(model), "momentum"_k = std::ref(momentum), "epoch"_k = epoch));
    // [/save]
  }
  auto model = make(0);
  Momentum momentum{0, some_network(0)};
  // [load]
  std::size_t epoch = 0;
  fanout::load("run.safetensors", fanout::dict("model"_k = std::ref(model), "momentum"_k = std::ref(momentum),
                                               "epoch"_k = std::ref(epoch)));
  // [/load]
  CHECK(epoch == 7);
  CHECK(momentum.rate == 0.5);
  CHECK(momentum.velocity.layers[0].bias[2] == 2);
  CHECK(model.model().layers[0].weight(2, 3) == 1);
}

TEST_CASE("a network is made from a file") {
  const InStateFolder here;
  fanout::save("network.safetensors", some_network(3));
  // [make]
  const auto network = fanout::load<Network>("network.safetensors");
  // [/make]
  CHECK(network.layers.size() == 1);
  CHECK(network.layers[0].weight(1, 1) == 3);
}

TEST_CASE("a file of DataParallel is loaded without its prefix, and a wrong one says what is wrong") {
  const InStateFolder here;
  fanout::save("torch.safetensors", fanout::dict("module"_k = some_network(4)));
  fanout::ParallelModel model{some_network(0), fanout::host_devices(2)};
  // [strip]
  fanout::load("torch.safetensors", model, fanout::strip_prefix("module."));
  // [/strip]
  CHECK(model.model().layers[0].weight(1, 1) == 4);
  std::ostringstream log;
  // [mismatch]
  try {
    fanout::load("torch.safetensors", model);
  } catch (const fanout::StateMismatch& error) {
    log << error.what() << '\n';  // all that differs
    for (const std::string& name : error.missing()) log << name << " is missing\n";
  }
  // [/mismatch]
  CHECK(log.str().find("strip_prefix(\"module.\")") != std::string::npos);
  CHECK(log.str().find("layers.0.weight is missing") != std::string::npos);
}
