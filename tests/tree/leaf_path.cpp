// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <fanout/tree/leaf_path.hpp>

using fanout::LeafPath;
using fanout::detail::key_text;

namespace {

struct Spot {
  int x;
};
enum class Hue { red };
class Closed {
  [[maybe_unused]] int x_ = 1;
};

}  // namespace

TEST_CASE("a leaf path shows its root, elements, members and keys") {
  const LeafPath output("output");
  CHECK(to_string(output) == "output");
  const LeafPath second(output, 1);
  CHECK(to_string(second) == "output[1]");
  const LeafPath image(second, "image");
  CHECK(to_string(image) == "output[1].image");
  const LeafPath noise(image, "noise");
  CHECK(to_string(noise) == "output[1].image.noise");
  CHECK(to_string(LeafPath(noise, 30)) == "output[1].image.noise[30]");
}

TEST_CASE("a leaf path shows the key of a map as its text stands") {
  const LeafPath output("output");
  const std::string key = "key";
  const LeafPath entry = LeafPath::at_key(output, key, 0);
  CHECK(to_string(entry) == "output[\"key\"]");
  CHECK(to_string(LeafPath(entry, "bias")) == "output[\"key\"].bias");
  const int number = -3;
  CHECK(to_string(LeafPath::at_key(output, number, 0)) == "output[-3]");
  const Spot spot{1};
  CHECK(to_string(LeafPath::at_key(output, spot, 7)) == "output[{1}]");
  const Closed closed;
  CHECK(to_string(LeafPath::at_key(output, closed, 7)) == "output[#7]");
}

TEST_CASE("one parent has many children") {
  const LeafPath input("input");
  const LeafPath first(input, std::size_t{0});
  const LeafPath second(input, "rows");
  CHECK(to_string(first) == "input[0]");
  CHECK(to_string(second) == "input.rows");
}

TEST_CASE("paths of other texts have other hashes, and those of one text have one, wherever its letters are") {
  const LeafPath output("output");
  const LeafPath zero(output, std::size_t{0});
  const LeafPath one(output, 1);
  const std::string long_key = "a key of more than eight letters";
  const std::string longer_key = "a key of more than eight letters, and more";
  const int number = 7;
  const double fraction = 0.5;
  const Spot spot{1};
  std::set<std::uint64_t> hashes;
  std::set<std::string> texts;
  for (const LeafPath& path :
       {output, LeafPath("input"), zero, one, LeafPath(zero, std::size_t{0}), LeafPath(zero, 1),
        LeafPath(one, std::size_t{0}), LeafPath(output, "x"), LeafPath(output, "y"), LeafPath(output, "x0"),
        LeafPath(zero, "x"), LeafPath::at_key(output, long_key, 0), LeafPath::at_key(output, longer_key, 0),
        LeafPath::at_key(one, number, 0), LeafPath::at_key(one, fraction, 0), LeafPath::at_key(zero, spot, 3)}) {
    texts.insert(to_string(path));
    hashes.insert(path.mixed_into(1));
  }
  CHECK(texts.size() == 16);
  CHECK(hashes.size() == texts.size());

  const std::string again = long_key;
  CHECK(LeafPath::at_key(output, long_key, 0).mixed_into(1) == LeafPath::at_key(output, again, 5).mixed_into(1));
  CHECK(LeafPath::at_key(output, Spot{1}, 3).mixed_into(1) == LeafPath::at_key(output, Spot{1}, 4).mixed_into(1));
  CHECK(LeafPath::at_key(output, Spot{1}, 3).mixed_into(1) != LeafPath::at_key(output, Spot{2}, 3).mixed_into(1));
  CHECK(LeafPath::at_key(output, 0.0, 3).mixed_into(1) == LeafPath::at_key(output, -0.0, 3).mixed_into(1));
  CHECK_THROWS_AS(LeafPath::at_key(output, std::nan(""), 3).mixed_into(1), fanout::StructureMismatch);
  CHECK_THROWS_AS(LeafPath::at_key(output, Closed(), 3).mixed_into(1), fanout::StructureMismatch);
  CHECK(output.mixed_into(1) != output.mixed_into(2));
}

TEST_CASE("a key is written as text in quotes, as a number, or by its place") {
  CHECK(key_text(std::string("a b"), 4) == "\"a b\"");
  CHECK(key_text(std::string_view("view"), 4) == "\"view\"");
  CHECK(key_text("literal", 4) == "\"literal\"");
  CHECK(key_text(std::string(), 4) == "\"\"");
  CHECK(key_text(12, 4) == "12");
  CHECK(key_text(-12L, 4) == "-12");
  CHECK(key_text(~0ULL, 4) == "18446744073709551615");
  CHECK(key_text(Closed(), 4) == "#4");
  CHECK(key_text(Hue::red, 4) == "0");
}
