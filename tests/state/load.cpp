// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/state/load.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <sys/stat.h>

#include <fanout/array/strided_view.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>
#include <fanout/state/save.hpp>

#include "device/remote_device.hpp"
#include "memory/remote_memory.hpp"
#include "observe/python.hpp"
#include "state/file_of.hpp"
#include "support/message_of.hpp"

using fanout::dict;
using fanout::load;
using fanout::save;
using fanout::StateMismatch;
using fanout::Tensor;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::TestFolder;
using namespace fanout::literals;

namespace {

using LoadedChoice = std::variant<std::monostate, int, std::string>;
struct KindsOfTrees {
  std::map<std::string, std::vector<int>> map;
  std::optional<float> some, none;
  std::vector<LoadedChoice> choices;
  std::vector<std::string> texts;
  std::array<double, 2> pair;
  std::array<std::vector<short>, 2> lists;
  std::deque<long> deque;
  std::complex<double> z;
  std::vector<std::complex<float>> zs;
  bool yes;
};

struct LoadedLayer {
  Tensor<float, 2> weight;
  Tensor<float, 1> bias;
};
struct LoadedModel {
  std::vector<LoadedLayer> layers;
  double rate = 0;
  fanout::Sum<int> steps{};
  fanout::PerReplica<std::vector<float>> cache{};
  // The sum of all that is loaded, so that a call shows what a replica has.
  double forward(fanout::RowRange rows) const {
    double sum = rate * static_cast<double>(rows.size());
    for (const LoadedLayer& layer : layers) {
      for (const float x : layer.weight) sum += x;
      for (const float x : layer.bias) sum += x;
    }
    return sum;
  }
};

/// A model whose weight is in the memory of the device that runs it.
struct WeightAlone {
  Tensor<float, 1> weight;
  float forward(fanout::RowRange) const {
    const float* const data = fanout_test::RemoteMemory::reach(weight.data());
    return data[0] + data[1];
  }
};

LoadedModel loaded_model(float first) {
  LoadedModel model{.layers = {}, .rate = first, .steps = static_cast<int>(first)};
  for (int i = 0; i < 2; ++i, ++first) {
    model.layers.push_back({Tensor<float, 2>::full({2, 3}, first), Tensor<float, 1>::full({2}, first + 10)});
  }
  return model;
}

bool same_models(const LoadedModel& a, const LoadedModel& b) {
  bool same = a.layers.size() == b.layers.size() && a.rate == b.rate && a.steps == b.steps;
  for (std::size_t i = 0; same && i < a.layers.size(); ++i) {
    same = a.layers[i].weight == b.layers[i].weight && a.layers[i].bias == b.layers[i].bias;
  }
  return same;
}

}  // namespace

TEST_CASE("a model is loaded as it was saved, wrapped or not") {
  const TestFolder folder;
  const std::string path = folder / "model";
  save(path, loaded_model(1));
  LoadedModel plain = loaded_model(5);
  plain.cache = std::vector<float>{1};
  const float* const before = plain.layers[0].weight.data();
  load(path, plain);
  CHECK(same_models(plain, loaded_model(1)));
  CHECK(plain.layers[0].weight.data() == before);
  CHECK((*plain.cache).size() == 1);

  fanout::ParallelModel model{loaded_model(7), fanout::host_devices(2)};
  load(path, model);
  CHECK(same_models(model.model(), loaded_model(1)));
}

TEST_CASE("replicas follow a model that is loaded") {
  const TestFolder folder;
  const std::string path = folder / "model";
  save(path, loaded_model(1));
  fanout::ParallelModel copied{fanout::per_replica(loaded_model(7)), fanout::host_devices(2)};
  const double before = copied(fanout::Range{2})[1];
  load(path, copied);
  const double after = copied(fanout::Range{2})[1];
  CHECK(before == 7 + 6 * 7 + 6 * 8 + 2 * 17 + 2 * 18);
  CHECK(after == 1 + 6 * 1 + 6 * 2 + 2 * 11 + 2 * 12);
}

TEST_CASE("a model is loaded while another thread calls it, and each call sees one state as a whole") {
  const TestFolder folder;
  save(folder / "old", loaded_model(7));
  save(folder / "new", loaded_model(1));
  fanout::ParallelModel model{loaded_model(7), fanout::host_devices(2)};
  const double before = model(fanout::Range{2})[0];
  load(folder / "new", model);
  const double after = model(fanout::Range{2})[0];
  CHECK(before != after);
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, wrong{0};
  std::thread caller([&] {
    while (!stop) {
      const auto sums = model(fanout::Range{2});
      if (sums[0] != sums[1] || (sums[0] != before && sums[0] != after)) ++wrong;
      ++calls;
    }
  });
  for (int round = 0; round < 20 || calls == 0; ++round) load(folder / (round % 2 == 0 ? "old" : "new"), model);
  stop = true;
  caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("several objects are loaded by references in a dict or a tuple") {
  const TestFolder folder;
  const std::string path = folder / "run";
  const LoadedModel saved = loaded_model(2);
  save(path, dict("model"_k = std::ref(saved), "at"_k = std::pair{4UL, 5L}, "name"_k = std::string("first")));
  fanout::ParallelModel model{loaded_model(9), fanout::host_devices(2)};
  std::pair<unsigned long, long> at;
  std::string name = "a longer name than the first";
  load(path, dict("model"_k = std::ref(model), "at"_k = std::ref(at), "name"_k = std::ref(name)));
  CHECK(same_models(model.model(), saved));
  CHECK(at == std::pair{4UL, 5L});
  CHECK(name == "first");

  save(folder / "tuple", std::tie(saved, name));
  LoadedModel plain = loaded_model(1);
  std::string other;
  load(folder / "tuple", std::tie(plain, other));
  CHECK(same_models(plain, saved));
  CHECK(other == "first");
}

TEST_CASE("each kind of tree is loaded where it stands") {
  const TestFolder folder;
  const KindsOfTrees saved{{{"a", {1, 2}}, {"b", {}}},
                           4.0F,
                           std::nullopt,
                           {LoadedChoice(), LoadedChoice(5), LoadedChoice("text")},
                           {"", "xy"},
                           {1.5, -0.0},
                           {{{1}, {2, 3}}},
                           {1, 2},
                           {1, 2},
                           {{3, 4}},
                           true};
  save(folder / "tree", saved);
  KindsOfTrees tree{{{"a", {0, 0}}, {"b", {}}},
                    0.0F,
                    std::nullopt,
                    {LoadedChoice(), LoadedChoice(0), LoadedChoice("")},
                    {"ab", ""},
                    {},
                    {{{0}, {0, 0}}},
                    {0, 0},
                    {0, 0},
                    {{0, 0}},
                    false};
  load(folder / "tree", tree);
  CHECK(tree.map == saved.map);
  CHECK(tree.some == saved.some);
  CHECK_FALSE(tree.none.has_value());
  CHECK(tree.choices == saved.choices);
  CHECK(tree.texts == saved.texts);
  CHECK(tree.pair == saved.pair);
  CHECK(std::signbit(tree.pair[1]));
  CHECK(tree.lists == saved.lists);
  CHECK(tree.deque == saved.deque);
  CHECK(tree.z == saved.z);
  CHECK(tree.zs == saved.zs);
  CHECK(tree.yes);
}

TEST_CASE("parts of arrays are loaded in place") {
  const TestFolder folder;
  save(folder / "parts", dict("columns"_k = fanout::tensor<int>({{1, 2}, {3, 4}}), "row"_k = std::vector{7, 8, 9},
                              "z"_k = fanout::tensor(std::vector<std::complex<double>>{{1, 2}, {3, 4}}, {2, 1})));
  Tensor<int, 2> x(2, 3);
  Tensor<int, 2> y(3, 3);
  Tensor<std::complex<double>, 2> z(2, 2);
  load(folder / "parts", dict("columns"_k = fanout::StridedView<int, 2>(x.view()).slice(1, {1, 3}), "row"_k = y.row(1),
                              "z"_k = fanout::StridedView<std::complex<double>, 2>(z.view()).slice(1, {1, 2})));
  CHECK(x == fanout::tensor<int>({{0, 1, 2}, {0, 3, 4}}));
  CHECK(y == fanout::tensor<int>({{0, 0, 0}, {7, 8, 9}, {0, 0, 0}}));
  CHECK(z == fanout::tensor(std::vector<std::complex<double>>{{0, 0}, {1, 2}, {0, 0}, {3, 4}}, {2, 2}));
}

TEST_CASE("a tree is saved from one memory and loaded into another") {
  const TestFolder folder;
  const auto first = fanout_test::RemoteMemory::memory(0), second = fanout_test::RemoteMemory::memory(1);
  const auto x = fanout::tensor<double>({{1, 2, 3}, {4, 5, 6}});
  const std::vector spaces{fanout::backend::Memory{}, first, second};
  for (const auto& from : spaces) {
    const auto saved = fanout::to(x, from);
    save(folder / "x", saved);
    for (const auto& to : spaces) {
      auto loaded = fanout::to(Tensor<double, 2>(2, 3), to);
      load(folder / "x", loaded);
      CHECK(loaded.space() == to.space);
      CHECK(fanout::to_host(loaded) == x);
      auto wide = fanout::to(Tensor<double, 2>(2, 5), to);
      load(folder / "x", fanout::StridedView<double, 2>(wide.view()).slice(1, {2, 5}));
      CHECK(fanout::to_host(wide) == fanout::tensor<double>({{0, 0, 1, 2, 3}, {0, 0, 4, 5, 6}}));
    }
  }
  CHECK(fanout_test::RemoteMemory::counts().waited > 0);
}

TEST_CASE("a model is loaded on devices with memories of their own, wherever its original is") {
  const TestFolder folder;
  save(folder / "model", WeightAlone{fanout::tensor<float>({1, 2})});
  const auto devices = fanout_test::remote_devices(2);
  const fanout::MemorySpace far = devices[0].memory().space;
  for (const bool is_far : {false, true}) {
    const WeightAlone first{fanout::tensor<float>({7, 8})};
    fanout::ParallelModel model{is_far ? fanout::to(first, devices[0]) : first, devices};
    const auto sums = [&model] { return fanout::to_host(model(fanout::Range{2})); };
    CHECK(sums() == fanout::tensor<float>({15, 15}));
    load(folder / "model", model);
    CHECK(sums() == fanout::tensor<float>({3, 3}));
    CHECK((model.model().weight.space() == far) == is_far);
    save(folder / "again", model);
    CHECK(fanout_test::text_of(folder / "again") == fanout_test::text_of(folder / "model"));
  }
}

TEST_CASE("all that differs is listed in one error, and nothing is loaded") {
  const TestFolder folder;
  const std::string path = folder / "file";
  save(path, dict("a"_k = 1, "b"_k = fanout::tensor<float>({{1, 2, 3}, {4, 5, 6}}), "c"_k = 2.0, "d"_k = 3, "e"_k = 4,
                  "f"_k = std::vector{1, 2}));
  int a = 0;
  Tensor<float, 2> b(3, 2);
  float c = 0;
  double f = 0;
  std::string g = "text";
  const auto tree = dict("a"_k = std::ref(a), "b"_k = std::ref(b), "c"_k = std::ref(c), "f"_k = std::ref(f),
                         "g"_k = std::ref(g), "h"_k = std::tie(a, c));
  try {
    load(path, tree);
    FAIL("nothing was thrown");
  } catch (const StateMismatch& error) {
    CHECK(error.missing() == std::vector<std::string>{"g", "h.0", "h.1"});
    CHECK(error.unexpected() == std::vector<std::string>{"d", "e"});
    CHECK(error.mismatched() == std::vector<std::string>{"b", "c", "f"});
    CHECK(
        error.what() ==
        "Error(s) in loading state_dict from " + path +
            ":\n\tMissing key(s) in state_dict: \"g\", \"h.0\", \"h.1\". "
            "\n\tUnexpected key(s) in state_dict: \"d\", \"e\". "
            "\n\tsize mismatch for b: copying a param with shape [2, 3] from checkpoint, the shape in current model is "
            "[3, 2]."
            "\n\ttype mismatch for c: copying a param of type F64 from checkpoint, the type in current model is F32."
            "\n\tsize mismatch for f: copying a param with shape [2] from checkpoint, the shape in current model is []."
            "\n\ttype mismatch for f: copying a param of type I32 from checkpoint, the type in current model is F64.");
  }
  CHECK(a == 0);
  CHECK(b == Tensor<float, 2>(3, 2));
  CHECK(g == "text");
}

TEST_CASE("a load never changes a structure: vectors, optionals, and tensors keep their sizes") {
  const TestFolder folder;
  const std::string path = folder / "file";
  const auto refused = [&path](auto& tree) { return message_of<StateMismatch>([&] { load(path, tree); }); };
  save(path, std::vector<Tensor<float, 1>>(2, Tensor<float, 1>(1)));
  std::vector<Tensor<float, 1>> short_one(1, Tensor<float, 1>(1)), long_one(3, Tensor<float, 1>(1));
  CHECK(says(refused(short_one), "Unexpected key(s) in state_dict: \"1\". "));
  CHECK(says(refused(long_one), "Missing key(s) in state_dict: \"2\". "));
  save(path, std::optional<float>(1));
  std::optional<float> none;
  CHECK(says(refused(none), "Unexpected key(s) in state_dict: \"value\". "));
  save(path, std::optional<float>());
  std::optional<float> some = 1.0F;
  CHECK(says(refused(some), "Missing key(s) in state_dict: \"value\". "));
  save(path, Tensor<float, 1>(3));
  Tensor<float, 1> empty;
  CHECK(says(refused(empty), "size mismatch for value", "shape [3] from", "is [0]."));
  Tensor<float, 2> flat(1, 3);
  CHECK(says(refused(flat), "size mismatch for value", "shape [3] from", "is [1, 3]."));
  save(path, Tensor<float, 1>());
  load(path, empty);
  save(path, 3);
  std::string text;
  CHECK(says(refused(text), "size mismatch for value", "shape [] from", "type mismatch", "I32", "U8"));
}

TEST_CASE("a prefix is taken off the names in the file") {
  const TestFolder folder;
  const std::string path = folder / "file";
  save(path, dict("module"_k = loaded_model(1)));
  LoadedModel model = loaded_model(5);
  load(path, model, fanout::strip_prefix("module."));
  CHECK(same_models(model, loaded_model(1)));
  // Without it, the error says so.
  CHECK(says(message_of<StateMismatch>([&] { load(path, model); }), "Missing key(s) in state_dict: \"layers.0.weight\"",
             "Unexpected key(s) in state_dict: ", "\"module.layers.0.weight\"",
             "The names in the file begin with \"module.\": load it with strip_prefix(\"module.\")."));
  // Only from names that begin with it.
  save(path, dict("module"_k = dict("a"_k = 1), "b"_k = 2, "c_module"_k = dict("d"_k = 3)));
  int a = 0, b = 0, d = 0;
  load(path, dict("a"_k = std::ref(a), "b"_k = std::ref(b), "c_module"_k = dict("d"_k = std::ref(d))),
       fanout::strip_prefix("module."));
  CHECK(a == 1);
  CHECK(b == 2);
  CHECK(d == 3);
  save(path, dict("module"_k = dict("a"_k = 1), "a"_k = 2));
  CHECK(says(message_of<fanout::InvalidArgument>(
                 [&] { load(path, dict("a"_k = std::ref(a)), fanout::strip_prefix("module.")); }),
             "one name without the prefix", path, "a", "module.a"));
}

TEST_CASE("two values of one name are refused: both would be loaded from one tensor") {
  const TestFolder folder;
  const std::string path = folder / "file";
  save(path, dict("a"_k = dict("b"_k = 1)));
  int dotted = 2, plain = 3;
  CHECK(says(message_of<fanout::InvalidArgument>(
                 [&] { load(path, dict("a.b"_k = std::ref(dotted), "a"_k = dict("b"_k = std::ref(plain)))); }),
             "one name at a.b", "keys without dots"));
  CHECK(dotted == 2);
  CHECK(plain == 3);
}

TEST_CASE("an advice to strip a prefix is only given if it would help") {
  const TestFolder folder;
  const std::string path = folder / "file";
  save(path, dict("module"_k = dict("a"_k = 1), "x"_k = 2));
  int a = 0, b = 0;
  const std::string message =
      message_of<StateMismatch>([&] { load(path, dict("a"_k = std::ref(a), "b"_k = std::ref(b))); });
  CHECK(message.find("strip_prefix") == std::string::npos);
}

TEST_CASE("a broken file is a format error, and nothing is loaded") {
  const TestFolder folder;
  const std::string path = folder / "file";
  int x = 7;
  std::ofstream(path) << fanout_test::file_of(R"({"value":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})", 3);
  CHECK(says(message_of<fanout::FormatError>([&] { load(path, x); }), path, "the end of the file, after 3"));
  std::ofstream(path).close();
  CHECK(says(message_of<fanout::FormatError>([&] { load(path, x); }), path, "byte 0"));
  CHECK(says(message_of<fanout::Error>([&] { load(folder / "none", x); }), "a state cannot be loaded at ", "none",
             "open: No such file"));
  CHECK(says(message_of<fanout::Error>([&] { load(folder / "", x); }), "expected a regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(says(message_of<fanout::Error>([&] { load(folder / "pipe", x); }), "pipe", "expected a regular file"));
  CHECK(x == 7);
}

TEST_CASE("saving and loading leave no file open") {
  const TestFolder folder;
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  int x = 7;
  const auto before = open_files();
  for (int i = 0; i < 3; ++i) {
    save(folder / "file", x);
    load(folder / "file", x);
    CHECK_THROWS_AS(load(folder / "", x), fanout::Error);
    CHECK_THROWS_AS(save(folder / "", x), fanout::Error);
  }
  CHECK(open_files() == before);
}

TEST_CASE("metadata of other writers, and bools that are neither 0 nor 1, do no harm") {
  const TestFolder folder;
  std::string file = fanout_test::file_of(
      R"({"__metadata__":{"format":"pt"},"value":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3);
  file[file.size() - 3] = '\0';
  file[file.size() - 2] = '\1';
  file[file.size() - 1] = '\7';
  std::ofstream(folder / "file", std::ios::binary) << file;
  Tensor<bool, 1> x(3);
  load(folder / "file", x);
  std::array<unsigned char, 3> bytes{};
  std::memcpy(bytes.data(), x.data(), 3);
  CHECK(bytes == std::array<unsigned char, 3>{0, 1, 1});
}

TEST_CASE("views of one array are saved each, and loaded in order") {
  const TestFolder folder;
  auto tied = fanout::tensor<float>({1, 2});
  save(folder / "file", dict("encoder"_k = tied.view(), "decoder"_k = tied.view()));
  auto first = fanout::tensor<float>({0, 0}), second = first;
  load(folder / "file", dict("encoder"_k = first.view(), "decoder"_k = second.view()));
  CHECK(first == tied);
  CHECK(second == tied);
  load(folder / "file", dict("encoder"_k = first.view(), "decoder"_k = first.view()));
  CHECK(first == tied);
}

TEST_CASE("an array in a memory that nobody knows is refused before anything is written") {
  const TestFolder folder;
  save(folder / "file", dict("a"_k = 1, "b"_k = fanout::tensor<int>({1, 2})));
  int a = 0;
  int elements[2] = {};
  const fanout::View<int, 1> nowhere(elements, {{2}}, {{.kind = "nowhere", .index = 0}});
  CHECK_THROWS_AS(load(folder / "file", dict("a"_k = std::ref(a), "b"_k = nowhere)), fanout::DeviceMismatch);
  CHECK(a == 0);
}
