// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/save.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/array/strided_view.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>
#include <fanout/state/loaded_tree.hpp>
#include <fanout/state/parse_header.hpp>

#include "memory/remote_memory.hpp"
#include "observe/python.hpp"
#include "state/file_of.hpp"
#include "support/message_of.hpp"

using fanout::dict;
using fanout::save;
using fanout::Tensor;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::TestFolder;
using namespace fanout::literals;

namespace {

/// A saved file: its tensors as text, and their elements.
struct SavedFile {
  explicit SavedFile(const std::string& path)
      : bytes(fanout_test::text_of(path)), header(fanout::detail::parse_header(fanout_test::bytes_of(bytes), path)) {}

  /// `name F32[2, 3], ...` in alphabetical order.
  std::string names() const {
    std::map<std::string, std::string> sorted;
    for (const auto& entry : header.entries) {
      sorted[entry.name] = std::string(name_of(entry.dtype)) + fanout::detail::shape_text(entry.shape);
    }
    std::string text;
    for (const auto& [name, type] : sorted) text += (text.empty() ? "" : ", ") + name + ' ' + type;
    return text;
  }

  template <class T>
  std::vector<T> elements(const std::string& name) const {
    for (const auto& entry : header.entries) {
      if (entry.name != name) continue;
      std::vector<T> elements((entry.end - entry.begin) / sizeof(T));
      if (!elements.empty()) {
        std::memcpy(elements.data(), bytes.data() + header.data_begin + entry.begin, elements.size() * sizeof(T));
      }
      return elements;
    }
    FAIL("there is no tensor " << name);
    return {};
  }

  std::string bytes;
  fanout::detail::StateHeader header;
};

struct SavedLayer {
  Tensor<float, 2> weight;
  Tensor<float, 1> bias;
};
struct SavedModel {
  std::vector<SavedLayer> layers;
  double rate = 0.5;
  fanout::Mean<float> mean{};
  fanout::PerReplica<std::vector<float>> cache{};
  fanout::Shared<std::string> words{};
  auto forward(fanout::View<const float, 1> x) const { return x.size() * layers.size(); }
};

/// A const member is not saved.
struct SavedWithConst {
  const int width;
  int height;
};

/// A class that shows its fields.
class SavedCounter {
 public:
  explicit SavedCounter(long count) : count_(count) {}
  friend auto fields(const SavedCounter*) { return dict("count"_k = &SavedCounter::count_); }

 private:
  long count_;
};

SavedModel saved_model() {
  SavedModel model;
  model.layers.push_back({fanout::tensor<float>({{1, 2}, {3, 4}, {5, 6}}), fanout::tensor<float>({7, 8, 9})});
  model.layers.push_back({fanout::tensor<float>({{-1}}), Tensor<float, 1>()});
  return model;
}

}  // namespace

TEST_CASE("a model is saved under the names of its members, wrapped or not") {
  const TestFolder folder;
  const std::string names =
      "layers.0.bias F32[3], layers.0.weight F32[3, 2], layers.1.bias F32[0], layers.1.weight F32[1, 1], "
      "mean F32[], rate F64[]";
  save(folder / "plain", saved_model());
  const SavedFile plain(folder / "plain");
  CHECK(plain.names() == names);
  CHECK(plain.elements<float>("layers.0.weight") == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(plain.elements<double>("rate") == std::vector{0.5});

  fanout::ParallelModel model{saved_model(), fanout::host_devices(2)};
  save(folder / "wrapped", model);
  CHECK(SavedFile(folder / "wrapped").bytes == plain.bytes);
  save(folder / "original", model.model());
  CHECK(SavedFile(folder / "original").bytes == plain.bytes);
  save(folder / "state", dict("model"_k = std::ref(model), "step"_k = 3));
  const SavedFile state(folder / "state");
  CHECK(state.elements<float>("model.layers.0.bias") == std::vector<float>{7, 8, 9});
  CHECK(state.elements<int>("step") == std::vector{3});
}

TEST_CASE("all kinds of trees are saved, with the way to a value as its name") {
  const TestFolder folder;
  using Choice = std::variant<std::monostate, int, std::string>;
  const std::array<float, 3> three{1, 2, 3};
  const std::tuple tree{
      dict("text"_k = std::string("a\0b", 3), "none"_k = std::optional<float>(), "some"_k = std::optional<float>(4)),
      std::map<std::string, std::vector<int>>{{"x y", {1}}, {"z", {}}},
      std::unordered_map<int, bool>{{-7, true}},
      std::pair{three, std::array<Tensor<int, 1>, 2>{Tensor<int, 1>(1), Tensor<int, 1>(2)}},
      std::vector<Choice>{Choice(), Choice(5), Choice("text")},
      std::vector<std::string>{"", "bc"},
      std::deque<short>{1, 2},
      SavedCounter(9),
      std::complex<double>(1, 2),
      SavedWithConst{3, 4}};
  save(folder / "tree", tree);
  const SavedFile file(folder / "tree");
  CHECK(file.names() ==
        "0.some F32[], 0.text U8[3], 1.x y I32[1], 1.z I32[0], 2.-7 BOOL[], 3.0 F32[3], 3.1.0 I32[1], 3.1.1 I32[2], "
        "4.1 I32[], 4.2 U8[4], 5.0 U8[0], 5.1 U8[2], 6.0 I16[], 6.1 I16[], 7.count I64[], 8 F64[2], 9.height I32[]");
  CHECK(file.elements<char>("0.text") == std::vector<char>{'a', '\0', 'b'});
  CHECK(file.elements<double>("8") == std::vector<double>{1, 2});
}

TEST_CASE("floating keys have the shortest text that reads back the same") {
  const TestFolder folder;
  const double next = std::nextafter(1.0, 2.0);
  save(folder / "double", std::map<double, int>{{-0.0, 1}, {0.1, 2}, {1.0, 3}, {next, 4}, {1e300, 5}});
  CHECK(SavedFile(folder / "double").names() == "0 I32[], 0.1 I32[], 1 I32[], 1.0000000000000002 I32[], 1e+300 I32[]");
  std::map<double, int> read{{0.0, 0}, {0.1, 0}, {1.0, 0}, {next, 0}, {1e300, 0}};
  fanout::load(folder / "double", read);
  CHECK(read == std::map<double, int>{{0.0, 1}, {0.1, 2}, {1.0, 3}, {next, 4}, {1e300, 5}});
  save(folder / "float", std::map<float, int>{{0.1F, 1}});
  CHECK(SavedFile(folder / "float").names() == "0.1 I32[]");
  const std::map<double, int> nan{{std::nan(""), 1}};
  CHECK(says(message_of<fanout::InvalidArgument>([&] { save(folder / "nan", nan); }),
             "a value under the key NaN cannot be saved or loaded", "found NaN"));
}

TEST_CASE("only the const members of structs are left out") {
  const TestFolder folder;
  save(folder / "tree",
       std::tuple<const double, std::map<std::string, const int>, std::optional<const float>, SavedWithConst>(
           1, {{"a", 2}}, 3.0F, {4, 5}));
  CHECK(SavedFile(folder / "tree").names() == "0 F64[], 1.a I32[], 2 F32[], 3.height I32[]");
}

TEST_CASE("arrays of complex numbers are saved as one tensor") {
  const TestFolder folder;
  struct Waves {
    std::array<std::complex<double>, 3> wide{{{1, 2}, {3, 4}, {5, 6}}};
    std::array<std::complex<float>, 2> narrow{};
  };
  save(folder / "waves", Waves());
  const SavedFile file(folder / "waves");
  CHECK(file.names() == "narrow C64[2], wide F64[3, 2]");
  CHECK(file.elements<double>("wide") == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(fanout::load<Waves>(folder / "waves").wide[2] == std::complex<double>(5, 6));
  const std::complex<double> two[]{{7, 8}, {9, 10}};
  save(folder / "two", two);
  CHECK(SavedFile(folder / "two").names() == "value F64[2, 2]");
  CHECK(SavedFile(folder / "two").elements<double>("value") == std::vector<double>{7, 8, 9, 10});
}

TEST_CASE("an array alone has the name value") {
  const TestFolder folder;
  save(folder / "array", std::vector<std::complex<float>>{{1, 2}, {3, 4}});
  CHECK(SavedFile(folder / "array").names() == "value C64[2]");
  save(folder / "text", std::string("abc"));
  CHECK(SavedFile(folder / "text").names() == "value U8[3]");
  save(folder / "nothing", std::tuple<>());
  CHECK(SavedFile(folder / "nothing").names().empty());
  CHECK(SavedFile(folder / "nothing").bytes.size() == 64);
}

TEST_CASE("parts of arrays are saved in their order") {
  const TestFolder folder;
  const auto x = fanout::tensor<std::int16_t>({{{0, 1, 2}, {3, 4, 5}}, {{6, 7, 8}, {9, 10, 11}}});
  const fanout::StridedView<const std::int16_t, 3> all(x.view());
  const auto pairs = fanout::tensor(std::vector<std::complex<double>>{{1, 2}, {3, 4}, {5, 6}, {7, 8}}, {2, 2});
  save(folder / "parts",
       dict("rows"_k = x.rows({1, 2}), "middle"_k = all.slice(2, {1, 2}), "end"_k = all.slice(1, {1, 2}),
            "none"_k = all.slice(2, {1, 1}), "all"_k = all,
            "pairs"_k = fanout::StridedView<const std::complex<double>, 2>(pairs.view()).slice(1, {1, 2})));
  const SavedFile file(folder / "parts");
  CHECK(file.names() ==
        "all I16[2, 2, 3], end I16[2, 1, 3], middle I16[2, 2, 1], none I16[2, 2, 0], pairs F64[2, 1, 2], "
        "rows I16[1, 2, 3]");
  CHECK(file.elements<std::int16_t>("rows") == std::vector<std::int16_t>{6, 7, 8, 9, 10, 11});
  CHECK(file.elements<std::int16_t>("middle") == std::vector<std::int16_t>{1, 4, 7, 10});
  CHECK(file.elements<std::int16_t>("end") == std::vector<std::int16_t>{3, 4, 5, 9, 10, 11});
  CHECK(file.elements<std::int16_t>("all") == std::vector<std::int16_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(file.elements<double>("pairs") == std::vector<double>{3, 4, 7, 8});
}

TEST_CASE("arrays in the memory of a device are saved") {
  const TestFolder folder;
  const auto memory = fanout_test::RemoteMemory::memory(1);
  Tensor<std::uint32_t, 1> large(5'000'000);  // more than is copied at once
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::uint32_t>(i * 2654435761U);
  const auto remote = fanout::to(dict("large"_k = large, "small"_k = fanout::tensor<float>({1, 2})), memory);
  const fanout::StridedView<const std::uint32_t, 2> strided(remote["large"_k].view().reshape(2'500'000, 2));
  save(folder / "remote",
       dict("all"_k = std::ref(remote), "part"_k = strided.slice(0, {0, 3}).slice(1, {1, 2}), "host"_k = 1.0F));
  const SavedFile file(folder / "remote");
  CHECK(file.elements<std::uint32_t>("all.large") == std::vector<std::uint32_t>(large.begin(), large.end()));
  CHECK(file.elements<float>("all.small") == std::vector<float>{1, 2});
  CHECK(file.elements<std::uint32_t>("part") == std::vector<std::uint32_t>{large[1], large[3], large[5]});
}

TEST_CASE("elements in a file are aligned as in memory") {
  const TestFolder folder;
  save(folder / "file", dict("a"_k = true, "b"_k = 1.0, "c"_k = 2.0F));
  const SavedFile file(folder / "file");
  CHECK(file.header.data_begin % 64 == 0);
  for (const auto& entry : file.header.entries) CHECK(entry.begin % fanout::detail::size_of(entry.dtype) == 0);
}

TEST_CASE("a tree whose names are not clear is not saved, and the old file stays") {
  const TestFolder folder;
  save(folder / "file", 1);
  const std::string before = fanout_test::text_of(folder / "file");
  const std::map<std::string, std::map<std::string, int>> twice{{"a", {{"b.c", 1}}}, {"a.b", {{"c", 2}}}};
  CHECK(says(message_of<fanout::InvalidArgument>([&] { save(folder / "file", twice); }), "one name", "a.b.c"));
  const std::map<std::string, int> no_text{{"\xFF", 1}};
  CHECK(says(message_of<fanout::InvalidArgument>([&] { save(folder / "file", no_text); }), "UTF-8"));
  const std::map<std::string, std::map<std::string, int>> empty{{"a", {{"", 1}}}};
  CHECK(says(message_of<fanout::InvalidArgument>([&] { save(folder / "file", empty); }), "empty key", "at a",
             "at least one letter"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { save(folder / "file", empty.at("a")); }), "empty key"));
  const auto unknown = Tensor<int, 1>(fanout::View<const int, 1>());
  const fanout::View<const int, 1> nowhere(unknown.data(), {{3}}, {{.kind = "nowhere", .index = 0}});
  CHECK_THROWS_AS(save(folder / "file", nowhere), fanout::DeviceMismatch);
  CHECK(fanout_test::text_of(folder / "file") == before);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder / "")) ++files;
  CHECK(files == 1);
}
