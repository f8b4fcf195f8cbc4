// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules 125 and 126 of docs/conformance.md: how saved state is loaded.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <fanout/state.hpp>

#include "observe/python.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout_test::message_of;
using fanout_test::says;

TEST_CASE("rule 125: loading the wrong state lists missing, unexpected and mismatched names in PyTorch's words") {
  const fanout_test::TestFolder folder;
  const std::string path = folder / "state.safetensors";
  fanout::save(path, fanout::dict("a"_k = fanout::Tensor<float, 2>(2, 3), "b"_k = 1, "c"_k = 2.0));
  fanout::Tensor<float, 2> a(3, 2);
  float c = 0;
  int d = 0;
  const std::string message = message_of<fanout::StateMismatch>(
      [&] { fanout::load(path, fanout::dict("a"_k = std::ref(a), "c"_k = std::ref(c), "d"_k = std::ref(d))); });
  CHECK(says(
      message, "Error(s) in loading state_dict", "Missing key(s) in state_dict: \"d\". ",
      "Unexpected key(s) in state_dict: \"b\". ",
      "size mismatch for a: copying a param with shape [2, 3] from checkpoint, the shape in current model is [3, 2].",
      "type mismatch for c"));
}

TEST_CASE("rule 126: a prefix is taken off the names that begin with it, and no others") {
  const fanout_test::TestFolder folder;
  const std::string path = folder / "state.safetensors";
  fanout::save(path, fanout::dict("module"_k = fanout::dict("weight"_k = 1), "bias"_k = 2));
  int weight = 0, bias = 0;
  fanout::load(path, fanout::dict("weight"_k = std::ref(weight), "bias"_k = std::ref(bias)),
               fanout::strip_prefix("module."));
  CHECK(weight == 1);
  CHECK(bias == 2);
}
