// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/data/collate.hpp>

#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/memory/host_allocator.hpp>
#include <fanout/memory/storage.hpp>

#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::collate;
using fanout::Extents;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

enum class Colour { red, green };

struct LabelledImage {
  Tensor<float, 2> image;
  int label;
  std::pair<double, std::string> more;
};

/// A type of a user that says how it is stacked.
struct Ticks {
  int count;
};
struct TickList {
  std::vector<int> counts;
};

Tensor<float, 2> image_of(std::size_t rows, std::size_t columns, float value) {
  return Tensor<float, 2>::full({rows, columns}, value);
}

template <class T, std::size_t R>
std::vector<T> elements(const Tensor<T, R>& tensor) {
  return std::vector<T>(tensor.begin(), tensor.end());
}

}  // namespace

template <>
struct fanout::gather_traits<fanout::rules::Stack, Ticks> {
  using type = TickList;
  static type gather(ShardResults<Ticks>& samples, const GatherTarget& target, const LeafPath&) {
    TickList list;
    for (std::size_t i = 0; i < samples.size(); ++i) list.counts.push_back(samples[i].count);
    list.counts.push_back(static_cast<int>(target.size()));
    return list;
  }
};

TEST_CASE("numbers become an array of one axis, and arrays get one axis more") {
  const Tensor<int, 1> numbers = collate(std::vector{3, 1, 2});
  CHECK(elements(numbers) == std::vector{3, 1, 2});
  const Tensor<Colour, 1> colours = collate(std::vector{Colour::green, Colour::red});
  CHECK(colours[0] == Colour::green);
  const Tensor<std::complex<float>, 1> complex = collate(std::vector<std::complex<float>>{{1, 2}});
  CHECK(complex[0].imag() == 2);
  constexpr std::array<bool, 2> flags{true, false};
  const Tensor<bool, 1> flagged = collate(std::span<const bool>(flags));
  CHECK(elements(flagged) == std::vector{true, false});

  const std::vector<Tensor<float, 2>> images{image_of(2, 3, 1), image_of(2, 3, 7)};
  const Tensor<float, 3> stacked = collate(images);
  CHECK(stacked.extents() == Extents<3>{2, 2, 3});
  CHECK(stacked(0, 1, 2) == 1);
  CHECK(stacked(1, 0, 0) == 7);
  const Tensor<float, 3> of_views = collate(std::vector<View<const float, 2>>{images[1], images[0]});
  CHECK(of_views(0, 1, 2) == 7);
  CHECK(of_views(1, 0, 0) == 1);
  CHECK(collate(std::vector<Tensor<float, 2>>{image_of(0, 3, 1)}).extents() == Extents<3>{1, 0, 3});
}

TEST_CASE("vectors of numbers become the rows of a table, and strings a vector of strings") {
  const Tensor<int, 2> rows = collate(std::vector<std::vector<int>>{{1, 2, 3}, {4, 5, 6}});
  CHECK(rows.extents() == Extents<2>{2, 3});
  CHECK(elements(rows) == std::vector{1, 2, 3, 4, 5, 6});
  const std::array<double, 2> numbers{1, 2};
  const Tensor<double, 2> spans = collate(std::vector<std::span<const double>>{numbers});
  CHECK(elements(spans) == std::vector<double>{1, 2});
  const std::vector<std::string> texts = collate(std::vector<std::string_view>{"a", "b"});
  CHECK(texts == std::vector<std::string>{"a", "b"});
}

TEST_CASE("trees are collated leaf by leaf and keep their structure") {
  using Sample = std::tuple<int, std::pair<float, std::vector<int>>, std::map<std::string, double>, std::array<int, 2>,
                            std::optional<int>>;
  const auto sample_of = [](int i) { return Sample{i, {0.5F, {i, 10 * i}}, {{"a", i}, {"b", 2 * i}}, {i, i + 1}, i}; };
  const auto [number, pair, map, array, optional] = collate(std::vector{sample_of(1), sample_of(2)});
  static_assert(std::is_same_v<decltype(pair), const std::pair<Tensor<float, 1>, Tensor<int, 2>>>);
  static_assert(std::is_same_v<decltype(array), const std::array<Tensor<int, 1>, 2>>);
  CHECK(elements(number) == std::vector{1, 2});
  CHECK(elements(pair.second) == std::vector{1, 10, 2, 20});
  CHECK(elements(map.at("b")) == std::vector<double>{2, 4});
  CHECK(elements(array[1]) == std::vector{2, 3});
  CHECK(elements(optional.value()) == std::vector{1, 2});

  const auto dict = collate(std::vector{fanout::dict("x"_k = 1, "y"_k = std::string("u"))});
  CHECK(elements(dict["x"_k]) == std::vector{1});
  CHECK(dict["y"_k] == std::vector<std::string>{"u"});
  const std::vector<Tensor<int, 2>> lists =
      collate(std::vector<std::vector<Tensor<int, 1>>>{{Tensor<int, 1>(2), Tensor<int, 1>(3)}});
  CHECK(lists[1].extents() == Extents<2>{1, 3});
  const std::variant<Tensor<int, 1>, std::vector<std::string>> variant =
      collate(std::vector<std::variant<int, std::string>>{"a", "b"});
  CHECK(std::get<1>(variant) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a struct becomes a tuple of its members in their order") {
  const std::vector<LabelledImage> samples{{image_of(1, 2, 5), 3, {0.5, "three"}},
                                           {image_of(1, 2, 6), 4, {1.5, "four"}}};
  const auto [image, label, more] = collate(samples);
  static_assert(std::is_same_v<decltype(image), const Tensor<float, 3>>);
  CHECK(elements(image) == std::vector<float>{5, 5, 6, 6});
  CHECK(elements(label) == std::vector{3, 4});
  CHECK(elements(more.first) == std::vector{0.5, 1.5});
  CHECK(more.second == std::vector<std::string>{"three", "four"});
}

TEST_CASE("all tensors of a batch are in the memory that is asked for") {
  static std::vector<const void*> allocated;
  const fanout::backend::HostAllocator memory{[](std::size_t bytes) {
    auto made = fanout::backend::HostAllocator{}(bytes);
    allocated.push_back(made.data());
    return made;
  }};
  const auto [number, list, dict, texts] =
      collate(std::vector{std::tuple(1, std::vector{Tensor<float, 1>(3)}, fanout::dict("x"_k = std::vector{1.0}),
                                     std::string())},
              memory);
  CHECK(allocated == std::vector<const void*>{number.data(), list[0].data(), dict["x"_k].data()});

  allocated.clear();
  const auto [image, label, more] = collate(std::vector<LabelledImage>{{image_of(2, 2, 0), 0, {}}}, memory);
  CHECK(allocated == std::vector<const void*>{image.data(), label.data(), more.first.data()});
}

TEST_CASE("a type that says how it is stacked is collated so") {
  const auto [list, number] = collate(std::vector<std::pair<Ticks, int>>{{{4}, 1}, {{5}, 2}});
  CHECK(list.counts == std::vector{4, 5, 2});
}

TEST_CASE("samples that do not fit together are refused, with the leaf and the sample") {
  CHECK(says(message_of<fanout::ShapeMismatch>([] {
               collate(std::vector<std::pair<int, std::vector<int>>>{{0, {1, 2}}, {0, {3, 4}}, {0, {5}}});
             }),
             "different extents at sample[1]", "[2] as in sample 0 of the batch", "[1] in sample 2",
             "give the loader a collate function"));
  CHECK(says(message_of<fanout::ShapeMismatch>([] {
               collate(std::vector<LabelledImage>{{image_of(2, 3, 0), 0, {}}, {image_of(3, 2, 0), 0, {}}});
             }),
             "sample.image", "[2, 3]", "[3, 2] in sample 1"));
  using Map = std::map<std::string, int>;
  CHECK(says(message_of<fanout::StructureMismatch>([] {
               collate(std::vector<Map>{{{"a", 1}, {"b", 2}}, {{"b", 1}, {"c", 2}}});
             }),
             "maps with different keys at sample", "as in sample 0", "no \"a\" and also \"c\" in sample 1"));
  CHECK(says(message_of<fanout::StructureMismatch>([] {
               collate(std::vector<std::vector<Tensor<int, 1>>>{{Tensor<int, 1>(1)}, {}});
             }),
             "vectors of different lengths", "1 trees", "0 in sample 1"));
  CHECK(says(message_of<fanout::StructureMismatch>([] {
               collate(std::vector<std::optional<int>>{1, {}});
             }),
             "a value in some and none in others", "a value as in", "none in sample 1"));
  CHECK(says(message_of<fanout::StructureMismatch>([] {
               collate(std::vector<std::variant<int, double>>{1, 2, 0.5});
             }),
             "different alternatives", "alternative 0, int", "alternative 1, double in sample 2"));
}

TEST_CASE("there is no batch of no samples") { CHECK_THROWS_AS(collate(std::vector<int>{}), fanout::InvalidArgument); }

TEST_CASE("a sample in another memory is refused") {
  const int number = 1;
  const View<const int, 1> elsewhere(&number, Extents<1>{1}, fanout::MemorySpace{{.kind = "toy", .index = 0}});
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { collate(std::vector{elsewhere}); }), "wrong memory at sample",
             "host memory", "toy:0"));
}

TEST_CASE("bools in a vector are stacked as any numbers") {
  const auto batch = fanout::collate(std::vector<bool>{true, false, true});
  static_assert(std::is_same_v<decltype(batch), const Tensor<bool, 1>>);
  CHECK(batch.size() == 3);
  CHECK((batch[0] && !batch[1] && batch[2]));
  CHECK_THROWS_AS(static_cast<void>(fanout::collate(std::vector<bool>())), fanout::InvalidArgument);
}
