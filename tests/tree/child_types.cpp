// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <valarray>
#include <variant>
#include <vector>

#include <fanout/tree/child_types.hpp>

using namespace fanout::literals;

namespace {

using fanout::detail::Alternative;
using fanout::detail::child_kind;
using fanout::detail::child_types_t;
using fanout::detail::ChildKind;
using fanout::detail::ChildType;
using fanout::detail::ChildTypes;
using fanout::detail::EachValue;
using fanout::detail::Element;

struct Point {
  const int x;
  double y;
};

static_assert(child_kind<decltype(fanout::dict("a"_k = 1))> == ChildKind::fixed);
static_assert(child_kind<std::tuple<>> == ChildKind::fixed);
static_assert(child_kind<std::pair<int, std::string>> == ChildKind::fixed);
static_assert(child_kind<Point> == ChildKind::fixed);
static_assert(child_kind<std::array<int, 3>> == ChildKind::array);
static_assert(child_kind<std::array<int, 0>> == ChildKind::fixed);
static_assert(child_kind<std::map<int, int>> == ChildKind::map);
static_assert(child_kind<std::vector<std::string>> == ChildKind::row);
static_assert(child_kind<std::deque<int>> == ChildKind::row);
static_assert(child_kind<std::span<const int>> == ChildKind::row);
static_assert(child_kind<std::optional<int>> == ChildKind::optional);
static_assert(child_kind<std::variant<int, float>> == ChildKind::variant);
static_assert(child_kind<std::valarray<int>> == ChildKind::sequence);
static_assert(child_kind<std::vector<bool>> == ChildKind::none, "a bool in it cannot be referred to");
static_assert(child_kind<std::list<int>> == ChildKind::none);
static_assert(child_kind<std::string> == ChildKind::none);
static_assert(child_kind<int> == ChildKind::none);
static_assert(child_kind<int*> == ChildKind::none);

template <class X, class... Children>
constexpr bool has_children = std::is_same_v<child_types_t<X>, ChildTypes<Children...>>;

static_assert(has_children<decltype(fanout::dict("a"_k = 1, "b"_k = 2.0)), ChildType<int, decltype("a"_k)>,
                           ChildType<double, decltype("b"_k)>>);
static_assert(
    has_children<std::tuple<int, const char&>, ChildType<int, Element<0>>, ChildType<const char&, Element<1>>>);
#ifndef __CUDACC__  // nvcc's front end reads another name; the host's compiler, which follows it, does not
static_assert(has_children<Point, ChildType<const int, decltype("x"_k)>, ChildType<double, decltype("y"_k)>>);
#endif
static_assert(has_children<std::array<float, 100'000>, ChildType<float, EachValue>>, "one type, however many");
static_assert(has_children<std::map<int, std::string>, ChildType<std::string, EachValue>>);
static_assert(has_children<std::vector<std::string>, ChildType<std::string, EachValue>>);
static_assert(has_children<std::span<const int>, ChildType<int, EachValue>>);
static_assert(has_children<std::optional<int>, ChildType<int, EachValue>>);
static_assert(has_children<std::variant<int, const float>, ChildType<int, Alternative<0>>,
                           ChildType<const float, Alternative<1>>>);
static_assert(has_children<std::valarray<int>, ChildType<int, EachValue>>);
static_assert(has_children<std::string>);
static_assert(has_children<std::tuple<>>);

static_assert(fanout::detail::Rebuildable<std::tuple<int>>);
static_assert(fanout::detail::Rebuildable<Point>);
static_assert(!fanout::detail::Rebuildable<std::valarray<int>>);
static_assert(!fanout::detail::Rebuildable<int>);

struct IsInt {
  template <class T>
  static constexpr bool is = std::is_same_v<T, int>;
};
static_assert(fanout::detail::all_children<IsInt, std::tuple<int, int>>);
static_assert(!fanout::detail::all_children<IsInt, std::tuple<int, float>>);
static_assert(!fanout::detail::all_children<IsInt, std::tuple<float, int>>);
static_assert(fanout::detail::all_children<IsInt, std::tuple<>>);

static_assert(std::is_void_v<fanout::detail::first_finding<>::type>);
static_assert(std::is_void_v<fanout::detail::first_finding<void, void>::type>);
static_assert(std::is_same_v<fanout::detail::first_finding<void, int, char>::type, int>);

}  // namespace
