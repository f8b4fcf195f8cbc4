// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/tree/visit_arrays.hpp>

using namespace fanout::literals;

namespace {

struct Strip {
  int number = 0;
};

struct Image {
  int width = 0;
  Strip output, noise;
};
struct Result {
  std::vector<Image> images;
  Strip last;
};
class Lister {
  Strip hidden_{5};
  friend constexpr auto fields(const Lister*) { return fanout::dict("shown"_k = &Lister::hidden_); }
};
struct NotToBeFound : Image {};

struct ThrowsWhenBuilt {
  std::string text;  // else std::variant would keep the value that it had
  explicit ThrowsWhenBuilt(int number) { throw number; }
};

/// A map that must not be walked, since its type holds no array.
struct NotToBeWalked : std::map<int, int> {
  void begin() const = delete;
};

}  // namespace

template <>
struct fanout::leaf_traits<Strip> {
  using piece_type = Strip;
  static std::size_t rows(const Strip&) { return 0; }
  static piece_type piece(const Strip& column, std::size_t, std::size_t) { return column; }
};

namespace {

template <class X>
std::vector<std::string> arrays_of(const X& tree) {
  std::vector<std::string> found;
  fanout::visit_arrays(tree, fanout::LeafPath("tree"), [&](const Strip& column, const fanout::LeafPath& path) {
    found.push_back(to_string(path) + "=" + std::to_string(column.number));
  });
  return found;
}

using Found = std::vector<std::string>;

}  // namespace

TEST_CASE("an array by itself is visited at the root") { CHECK(arrays_of(Strip{7}) == Found{"tree=7"}); }

TEST_CASE("a tree without an array is not walked") {
  CHECK(arrays_of(3) == Found{});
  CHECK(arrays_of(std::string("text")) == Found{});
  CHECK(arrays_of(NotToBeWalked()) == Found{});
  CHECK(arrays_of(std::tuple<>()) == Found{});
}

TEST_CASE("the arrays of each kind of node are visited in order with their paths") {
  CHECK(arrays_of(std::tuple(Strip{1}, 2, Strip{3})) == Found{"tree[0]=1", "tree[2]=3"});
  CHECK(arrays_of(std::pair(std::string("x"), Strip{1})) == Found{"tree[1]=1"});
  CHECK(arrays_of(std::array{Strip{1}, Strip{2}}) == Found{"tree[0]=1", "tree[1]=2"});
  CHECK(arrays_of(std::vector{Strip{1}, Strip{2}}) == Found{"tree[0]=1", "tree[1]=2"});
  CHECK(arrays_of(std::vector<Strip>()) == Found{});
  const std::array two{Strip{1}, Strip{2}};
  CHECK(arrays_of(std::span<const Strip>(two)) == Found{"tree[0]=1", "tree[1]=2"});
  CHECK(arrays_of(std::optional(Strip{1})) == Found{"tree=1"});
  CHECK(arrays_of(std::optional<Strip>()) == Found{});
  CHECK(arrays_of(fanout::dict("b"_k = Strip{1}, "n"_k = 5, "a"_k = Strip{2})) == Found{"tree.b=1", "tree.a=2"});
  CHECK(arrays_of(std::map<std::string, Strip>{{"b", {1}}, {"a", {2}}}) == Found{"tree[\"a\"]=2", "tree[\"b\"]=1"});
  CHECK(arrays_of(std::unordered_map<int, Strip>{{5, {1}}}) == Found{"tree[5]=1"});
  CHECK(arrays_of(std::map<std::pair<int, int>, Strip>{{{1, 1}, {1}}, {{1, 2}, {2}}}) ==
        Found{"tree[(1, 1)]=1", "tree[(1, 2)]=2"});
}

TEST_CASE("the arrays of structs are visited in the order of the members, with their names") {
  CHECK(arrays_of(Image{0, {1}, {2}}) == Found{"tree.output=1", "tree.noise=2"});
  CHECK(arrays_of(Result{{{}, {0, {3}, {4}}}, {5}}) == Found{"tree.images[0].output=0", "tree.images[0].noise=0",
                                                             "tree.images[1].output=3", "tree.images[1].noise=4",
                                                             "tree.last=5"});
  CHECK(arrays_of(std::pair(Lister(), fanout::dict("a"_k = Image()))) ==
        Found{"tree[0].shown=5", "tree[1].a.output=0", "tree[1].a.noise=0"});
  CHECK(arrays_of(NotToBeFound()) == Found{});
}

TEST_CASE("the arrays of a variant's alternative are visited, at the variant's own path") {
  using Variant = std::variant<Strip, int, std::pair<int, Strip>, Strip>;
  CHECK(arrays_of(Variant(std::in_place_index<0>, Strip{1})) == Found{"tree=1"});
  CHECK(arrays_of(Variant(2)) == Found{});
  CHECK(arrays_of(Variant(std::pair(3, Strip{4}))) == Found{"tree[1]=4"});
  CHECK(arrays_of(std::vector{Variant(5), Variant(std::in_place_index<3>, Strip{6})}) == Found{"tree[1]=6"});
}

TEST_CASE("in a variant without a value nothing is visited") {
  std::variant<Strip, ThrowsWhenBuilt, std::pair<int, Strip>> variant;
  CHECK_THROWS(variant.emplace<1>(3));
  REQUIRE(variant.valueless_by_exception());
  CHECK(arrays_of(variant) == Found{});
}

TEST_CASE("nested trees are visited to the bottom") {
  const auto tree = std::tuple(
      1, fanout::dict("image"_k = std::vector{std::map<int, std::optional<Strip>>{{4, Strip{1}}, {5, std::nullopt}},
                                              std::map<int, std::optional<Strip>>{{6, Strip{2}}}},
                      "noise"_k = Strip{3}));
  CHECK(arrays_of(tree) == Found{"tree[1].image[0][4]=1", "tree[1].image[1][6]=2", "tree[1].noise=3"});
}

TEST_CASE("a visitor is not copied, and gets the arrays by reference") {
  const std::vector<Strip> tree(3);
  struct Visitor {
    std::vector<const Strip*> seen;
    void operator()(const Strip& column, const fanout::LeafPath&) { seen.push_back(&column); }
  } visitor;
  fanout::visit_arrays(tree, fanout::LeafPath("tree"), visitor);
  CHECK(visitor.seen == std::vector<const Strip*>{&tree[0], &tree[1], &tree[2]});
}
