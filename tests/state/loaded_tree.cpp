// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/loaded_tree.hpp>

#include <doctest/doctest.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/state/save.hpp>

#include "observe/python.hpp"
#include "state/file_of.hpp"
#include "support/message_of.hpp"

using fanout::load;
using fanout::save;
using fanout::StateMismatch;
using fanout::Tensor;
using namespace fanout::literals;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::TestFolder;

namespace {

struct MadeTree {
  std::vector<std::map<std::string, Tensor<float, 2>>> layers;
  std::unordered_map<int, std::string> texts;
  std::optional<std::vector<double>> some, none;
  Tensor<std::complex<double>, 1> z;
  long number = 0;
  friend bool operator==(const MadeTree&, const MadeTree&) = default;
};

/// A struct inside itself.
struct MadeNode {
  double value = 0;
  std::vector<MadeNode> inner;
};

/// Trees in C arrays.
struct MadeArrays {
  Tensor<float, 1> pair[2];
  std::vector<std::string> texts[1][2];

  friend constexpr auto fields(const MadeArrays*) {
    return fanout::dict("pair"_k = &MadeArrays::pair, "texts"_k = &MadeArrays::texts);
  }
};

/// The file of a MadeNode that has so many inside each other, of which only the last one has a value.
std::string nodes_saved(std::size_t count) {
  std::string name;
  for (std::size_t i = 0; i < count; ++i) name += "inner.0.";
  return fanout_test::file_of('{' + ('"' + name + R"(value":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})"), 8);
}

}  // namespace

TEST_CASE("a tree is made as the file tells") {
  const TestFolder folder;
  MadeTree saved;
  saved.layers.push_back({{"a", Tensor<float, 2>::full({2, 3}, 4)}, {"b", Tensor<float, 2>(0, 7)}});
  saved.layers.push_back({{"c", Tensor<float, 2>::full({1, 1}, 5)}});
  saved.texts = {{-3, "three"}, {44, ""}};
  saved.some = {1, 2, 3};
  saved.z = fanout::tensor(std::vector<std::complex<double>>{{1, 2}, {3, 4}}, {2});
  saved.number = 7;
  save(folder / "file", saved);
  CHECK(load<MadeTree>(folder / "file") == saved);
  save(folder / "file", std::tuple(saved));
  CHECK(load<MadeTree>(folder / "file", fanout::strip_prefix("0.")) == saved);
  save(folder / "file", std::optional<float>(3));
  CHECK(load<std::optional<float>>(folder / "file") == 3);
  save(folder / "file", std::optional<float>());
  CHECK_FALSE(load<std::optional<float>>(folder / "file").has_value());
  save(folder / "file", std::vector{1, 2});
  CHECK(load<std::vector<int>>(folder / "file") == std::vector{1, 2});
}

TEST_CASE("the trees in a C array are made as the file tells") {
  const TestFolder folder;
  const std::string path = folder / "file";
  save(path, MadeArrays{{Tensor<float, 1>::full({2}, 4), Tensor<float, 1>::full({3}, 5)}, {{{"a", "b"}, {"c"}}}});
  const auto made = load<MadeArrays>(path);
  CHECK(made.pair[1] == Tensor<float, 1>::full({3}, 5));
  CHECK(made.texts[0][0] == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a file that does not fit the type of a tree is a mismatch") {
  const TestFolder folder;
  const std::string path = folder / "file";
  save(path, Tensor<float, 2>(2, 3));
  CHECK(says(message_of<StateMismatch>([&] { load<Tensor<float, 1>>(path); }), "size mismatch for value",
             "shape [2, 3] from", "is [0]"));
  CHECK(
      says(message_of<StateMismatch>([&] { load<Tensor<double, 2>>(path); }), "type mismatch for value", "F32", "F64"));
  save(path, std::map<std::string, int>{{"1", 1}, {"x", 2}});
  CHECK(says(message_of<StateMismatch>([&] { load<std::map<int, int>>(path); }),
             "Unexpected key(s) in state_dict: \"x\". "));
  save(path, std::map<std::string, int>{{"300", 1}});
  CHECK(says(message_of<StateMismatch>([&] { load<std::map<std::uint8_t, int>>(path); }), "Unexpected", "\"300\""));
  save(path, std::map<std::string, int>{{"0", 1}, {"2", 2}});
  CHECK(says(message_of<StateMismatch>([&] { load<std::vector<std::vector<int>>>(path); }), "Unexpected", "\"2\"",
             "size mismatch for 0"));
}

TEST_CASE("a name with an empty key is one that no tree has") {
  const TestFolder folder;
  const std::string path = folder / "file";
  std::ofstream(path, std::ios::binary) << fanout_test::file_of(
      R"({"a.":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})", 2);
  using Map = std::map<std::string, std::map<std::string, std::uint8_t>>;
  CHECK(says(message_of<StateMismatch>([&] { load<Map>(path); }), "Unexpected key(s) in state_dict: \"a.\", \"\". "));
}

TEST_CASE("extents that no array can have are an error that names the file") {
  const TestFolder folder;
  const std::string path = folder / "file";
  for (const std::string shape : {"[0,18446744073709551615]", "[9223372036854775808,0]"}) {
    std::ofstream(path, std::ios::binary)
        << fanout_test::file_of(R"({"value":{"dtype":"F64","shape":)" + shape + R"(,"data_offsets":[0,0]}})");
    CHECK(says(message_of<fanout::FormatError>([&] { load<Tensor<double, 2>>(path); }), path + ", byte 9",
               "extents that an array can have"));
  }
}

TEST_CASE("a file without elements makes no large array") {
  const TestFolder folder;
  const std::string path = folder / "file";
  std::ofstream(path, std::ios::binary) << fanout_test::file_of(
      R"({"value":{"dtype":"F64","shape":[1152921504606846975,0],"data_offsets":[0,0]}})");
  CHECK(says(message_of<StateMismatch>([&] { load<std::vector<std::complex<double>>>(path); }), "size mismatch"));
  CHECK(says(message_of<StateMismatch>([&] { load<Tensor<std::complex<double>, 1>>(path); }), "size mismatch"));
}

TEST_CASE("a file cannot make a tree so deep that it takes all the stack") {
  const TestFolder folder;
  const std::string path = folder / "file";
  const auto refused = [&](std::size_t count) {
    std::ofstream(path, std::ios::binary) << nodes_saved(count);
    return message_of<StateMismatch>([&] { load<MadeNode>(path); });
  };
  CHECK(says(refused(100'000), path, "more than 1000 levels in a name: inner.0.inner.0.", "load<T>() makes no deeper"));
  CHECK(says(refused(500), "more than 1000 levels"));
  CHECK(says(refused(499), "Missing", "\"value\", \"inner.0.value\""));
}
