// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <valarray>
#include <variant>
#include <vector>

#include <fanout/tree/children.hpp>

using namespace fanout::literals;

namespace {

using fanout::LeafPath;
using fanout::detail::rebuild;
using fanout::detail::rebuilt_t;
using fanout::detail::visit_children;
using fanout::detail::WithPlaces;

struct Body {
  int mass;
  double charge;
};

/// The paths of the children and what stands there: "root[0]=1 root[1]=2 ".
template <class X>
std::string list(X&& node) {
  std::string text;
  visit_children(node, LeafPath("root"), [&text](const auto& child, const LeafPath& path, auto) {
    text += to_string(path) + '=' + std::to_string(static_cast<int>(child)) + ' ';
  });
  return text;
}

struct ThrowsWhenMade {
  std::string text;  // so that a variant cannot keep what it had
  ThrowsWhenMade() = default;
  explicit ThrowsWhenMade(int) { throw std::runtime_error("not made"); }
  explicit operator int() const { return 0; }
};

struct AsDouble {
  template <class T>
  using type = double;
};
struct AsReference {
  template <class T>
  using type = const T&;
};

const auto half = [](const auto& child, const LeafPath&, auto) { return child / 2.0; };

}  // namespace

TEST_CASE("children are visited in their order, each with its path") {
  CHECK(list(fanout::dict("a"_k = 1, "b"_k = 2)) == "root.a=1 root.b=2 ");
  CHECK(list(std::tuple(1, 2.0, 'a')) == "root[0]=1 root[1]=2 root[2]=97 ");
  CHECK(list(std::pair(1, 2)) == "root[0]=1 root[1]=2 ");
  CHECK(list(std::array{4, 5}) == "root[0]=4 root[1]=5 ");
  CHECK(list(Body{1, 2.0}) == "root.mass=1 root.charge=2 ");
  CHECK(list(std::map<std::string, int>{{"b", 2}, {"a", 1}}) == "root[\"a\"]=1 root[\"b\"]=2 ");
  CHECK(list(std::map<int, int>{{7, 2}, {-1, 1}}) == "root[-1]=1 root[7]=2 ");
  CHECK(list(std::map<std::pair<int, int>, int>{{{1, 1}, 5}, {{0, 1}, 6}}) == "root[(0, 1)]=6 root[(1, 1)]=5 ");
  CHECK(list(std::vector{4, 5}) == "root[0]=4 root[1]=5 ");
  const std::array shown{4, 5};
  CHECK(list(std::span(shown)) == "root[0]=4 root[1]=5 ");
  CHECK(list(std::valarray{4, 5}) == "root[0]=4 root[1]=5 ");
  CHECK(list(std::optional(3)) == "root=3 ");
  CHECK(list(std::variant<char, int>(3)) == "root=3 ");
}

TEST_CASE("where there is none, no child is visited") {
  CHECK(list(fanout::dict()) == "");
  CHECK(list(std::tuple<>()) == "");
  CHECK(list(std::vector<int>()) == "");
  CHECK(list(std::map<int, int>()) == "");
  CHECK(list(std::optional<int>()) == "");
  CHECK(list(3) == "");
  CHECK(list(std::vector{true, false}) == "");
  std::variant<int, ThrowsWhenMade> valueless(1);
  CHECK_THROWS_AS(valueless.emplace<1>(1), std::runtime_error);
  CHECK(list(valueless) == "");
}

TEST_CASE("children of a mutable node are mutable, unless they are declared const") {
  const auto doubled = [](auto node) {
    visit_children(node, LeafPath("root"), [](auto& child, const LeafPath&, auto) {
      using Child = std::remove_reference_t<decltype(child)>;
      if constexpr (!std::is_const_v<Child>) child = static_cast<Child>(2 * child);
    });
    return node;
  };
  CHECK(list(doubled(fanout::dict("a"_k = 1))) == "root.a=2 ");
  CHECK(list(doubled(std::tuple<int, const int>(1, 1))) == "root[0]=2 root[1]=1 ");
  CHECK(list(doubled(Body{1, 2.0})) == "root.mass=2 root.charge=4 ");
  CHECK(list(doubled(std::map<int, int>{{0, 3}})) == "root[0]=6 ");
  CHECK(list(doubled(std::vector{3})) == "root[0]=6 ");
  CHECK(list(doubled(std::array{3})) == "root[0]=6 ");
  CHECK(list(doubled(std::optional(3))) == "root=6 ");
  CHECK(list(doubled(std::variant<char, int>(3))) == "root=6 ");
  struct WithConst {
    const int fixed;
    int free;
  };
  CHECK(list(doubled(WithConst{1, 1})) == "root.fixed=1 root.free=2 ");
  int number = 3;
  const std::tuple<int&> referring(number);
  visit_children(referring, LeafPath("root"), [](int& child, const LeafPath&, auto) { child = 4; });
  CHECK(number == 4);
}

TEST_CASE("a place finds the child of another node") {
  const auto sum = [](const auto& one, const auto& other) {
    double total = 0;
    visit_children<WithPlaces>(one, LeafPath("root"), [&](const auto& child, const LeafPath&, const auto& place) {
      total = 10 * total + child * place(other);
    });
    return total;
  };
  CHECK(sum(fanout::dict("a"_k = 1, "b"_k = 2), fanout::dict("b"_k = 3, "a"_k = 4)) == 46);
  CHECK(sum(std::tuple(1, 2), std::array{3, 4}) == 38);
  CHECK(sum(Body{1, 2.0}, Body{3, 4.0}) == 38);
  CHECK(sum(std::map<int, int>{{5, 1}, {6, 2}}, std::map<long, int>{{4, 9}, {5, 3}, {6, 4}}) == 38);
  CHECK(sum(std::vector{1, 2}, std::array{3, 4}) == 38);
  CHECK(sum(std::array{1, 2}, std::vector{3, 4}) == 38);
  CHECK(sum(std::optional(2), std::optional(3)) == 6);
  CHECK(sum(std::variant<char, int>(2), std::variant<char, int>(3)) == 6);
  std::vector<int> written(2);
  const std::vector numbers{1, 2};
  visit_children<WithPlaces>(numbers, LeafPath("root"),
                             [&](const int& child, const LeafPath&, const auto& place) { place(written) = child; });
  CHECK(written == std::vector{1, 2});
}

TEST_CASE("a place knows what the child is declared as: a reference if it belongs to somebody else") {
  const auto declared_as = []<class Expected>(auto node, std::type_identity<Expected>) {
    visit_children<WithPlaces>(node, LeafPath("root"), []<class Place>(const auto&, const LeafPath&, const Place&) {
      CHECK(std::is_same_v<typename Place::type, Expected>);
    });
  };
  int number = 0;
  declared_as(std::tuple<int&>(number), std::type_identity<int&>());
  declared_as(std::tuple<const int>(1), std::type_identity<const int>());
  declared_as(std::vector{1}, std::type_identity<int>());
  declared_as(std::span(&number, 1), std::type_identity<int&>());
  declared_as(std::map<int, char>{{1, 'a'}}, std::type_identity<char>());
  declared_as(std::optional(1), std::type_identity<int>());
  declared_as(std::variant<char, const int>(1), std::type_identity<const int>());
}

TEST_CASE("a node is rebuilt with other children, of other types") {
  const auto halved = []<class X>(const X& node) {
    return rebuild<rebuilt_t<X, AsDouble>>(node, LeafPath("root"), half);
  };
  CHECK(halved(fanout::dict("a"_k = 1, "b"_k = 'b')) == fanout::dict("a"_k = 0.5, "b"_k = 49.0));
  CHECK(halved(std::tuple(1, 'b')) == std::tuple(0.5, 49.0));
  CHECK(halved(std::tuple<>()) == std::tuple<>());
  CHECK(halved(std::pair(1, 3)) == std::pair(0.5, 1.5));
  CHECK(halved(std::array{1, 3}) == std::array{0.5, 1.5});
  CHECK(halved(std::map<int, int>{{7, 1}, {8, 3}}) == std::map<int, double>{{7, 0.5}, {8, 1.5}});
  CHECK(halved(std::vector{1, 3}) == std::vector{0.5, 1.5});
  const std::array shown{1, 3};
  CHECK(halved(std::span(shown)) == std::vector{0.5, 1.5});
  CHECK(halved(std::optional(1)) == std::optional(0.5));
  CHECK(halved(std::optional<int>()) == std::nullopt);
  const auto variant = halved(std::variant<char, int>(1));
  CHECK(variant.index() == 1);
  CHECK(std::get<1>(variant) == 0.5);

  const Body body = rebuild<Body>(Body{2, 6.0}, LeafPath("root"), [](const auto& field, const LeafPath&, auto) {
    return static_cast<std::remove_cvref_t<decltype(field)>>(field + 1);
  });
  CHECK(body.mass == 3);
  CHECK(body.charge == 7.0);
}

TEST_CASE("a rebuilt map keeps its order or its hash") {
  using Order = bool (*)(int, int);
  using Hash = std::size_t (*)(int);
  const auto halved = []<class X>(const X& node) {
    return rebuild<rebuilt_t<X, AsDouble>>(node, LeafPath("root"), half);
  };
  std::map<int, int, Order> map([](int a, int b) { return a > b; });
  map = {{7, 1}, {8, 3}};
  const auto other = halved(map);
  CHECK(other.begin()->first == 8);
  CHECK(other.at(7) == 0.5);
  std::unordered_map<int, int, Hash> hashed(8, [](int key) { return static_cast<std::size_t>(key); });
  hashed = {{7, 1}, {8, 3}};
  CHECK(halved(hashed).at(8) == 1.5);
}

TEST_CASE("a rebuilt node holds references if it can, and otherwise values") {
  static_assert(std::is_same_v<rebuilt_t<std::tuple<int, char>, AsReference>, std::tuple<const int&, const char&>>);
  static_assert(std::is_same_v<rebuilt_t<decltype(fanout::dict("a"_k = 1)), AsReference>,
                               fanout::Dict<fanout::detail::Entry<decltype("a"_k), const int&>>>);
  static_assert(std::is_same_v<rebuilt_t<std::vector<int>, AsReference>, std::vector<int>>);
  static_assert(std::is_same_v<rebuilt_t<std::array<int, 2>, AsReference>, std::array<int, 2>>);
  static_assert(std::is_same_v<rebuilt_t<std::optional<int>, AsReference>, std::optional<int>>);
  static_assert(std::is_same_v<rebuilt_t<std::variant<int>, AsReference>, std::variant<int>>);
  static_assert(std::is_same_v<rebuilt_t<std::map<int, int>, AsReference>, std::map<int, int>>);
  const std::tuple numbers(1, 2);
  const auto same = rebuild<rebuilt_t<std::tuple<int, int>, AsReference>>(
      numbers, LeafPath("root"), [](const int& child, const LeafPath&, auto) -> const int& { return child; });
  CHECK(&std::get<1>(same) == &std::get<1>(numbers));
}

TEST_CASE("children are rebuilt in their order, each with its path and place") {
  const auto listed = []<class X>(const X& node) {
    std::string text;
    rebuild<rebuilt_t<X, AsDouble>, WithPlaces>(
        node, LeafPath("root"), [&](const auto& child, const LeafPath& path, const auto& place) {
          text += to_string(path) + (&place(node) == &child ? " " : " of another ");
          return 0.0;
        });
    return text;
  };
  CHECK(listed(fanout::dict("a"_k = 1, "b"_k = 2)) == "root.a root.b ");
  CHECK(listed(std::tuple(1, 2)) == "root[0] root[1] ");
  CHECK(listed(std::array{1, 2}) == "root[0] root[1] ");
  CHECK(listed(std::map<int, int>{{3, 1}, {2, 2}}) == "root[2] root[3] ");
  CHECK(listed(std::vector{1, 2}) == "root[0] root[1] ");
  CHECK(listed(std::optional(1)) == "root ");
  CHECK(listed(std::variant<int>(1)) == "root ");
}
