// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules 125, 126 and 199 to 204 of docs/conformance.md: how saved state is loaded.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>
#include <fanout/state.hpp>

#include "memory/remote_memory.hpp"
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

TEST_CASE("rules 199, 200, 201, 202 and 204: a file is loaded into any memory, whichever it was saved from") {
  const fanout_test::TestFolder folder;
  const std::string path = folder / "state.safetensors";
  const auto one = fanout::tensor<float>({1, 2}), other = fanout::tensor<float>({3, 4, 5});
  const std::vector memories{fanout::backend::Memory{}, fanout_test::RemoteMemory::memory(0),
                             fanout_test::RemoteMemory::memory(7)};
  for (const auto& from : memories) {
    fanout::save(path, fanout::dict("one"_k = fanout::to(one, from), "other"_k = other));
    for (const auto& to : memories) {
      fanout::Tensor<float, 1> here(2);
      auto there = fanout::to(fanout::Tensor<float, 1>(3), to);
      fanout::load(path, fanout::dict("one"_k = std::ref(here), "other"_k = std::ref(there)));
      CHECK(here == one);
      CHECK(there.space() == to.space);
      CHECK(fanout::to_host(there) == other);
    }
  }
}

TEST_CASE("rule 203: an array with two names is saved twice, and loaded into two arrays") {
  const fanout_test::TestFolder folder;
  const std::string path = folder / "state.safetensors";
  fanout::Tensor<float, 1> weight = fanout::tensor<float>({1, 2});
  fanout::save(path, fanout::dict("encoder"_k = weight.view(), "decoder"_k = weight.view()));
  fanout::Tensor<float, 1> encoder(2), decoder(2);
  fanout::load(path, fanout::dict("encoder"_k = std::ref(encoder), "decoder"_k = std::ref(decoder)));
  encoder[0] = 7;
  CHECK(decoder == weight);
  CHECK(encoder != weight);
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
