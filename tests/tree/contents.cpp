// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/tree/contents.hpp>

#include "tree/shapes.hpp"

using namespace fanout::literals;

namespace {

using fanout::HasArrayLeaf;
using fanout_test::Column;
using fanout_test::DerivedNumber;
using fanout_test::HiddenColumn;
using fanout_test::ListedColumn;
using fanout_test::NamedValues;
using fanout_test::OneNumber;
using fanout_test::WrappedColumn;

using Columns = decltype(fanout::dict("a"_k = 1, "b"_k = Column()));

static_assert(HasArrayLeaf<Column>);
static_assert(HasArrayLeaf<Columns>);
static_assert(HasArrayLeaf<std::vector<Column>>);
static_assert(HasArrayLeaf<std::span<const Column>>);
static_assert(HasArrayLeaf<std::deque<std::vector<Column>>>);
static_assert(HasArrayLeaf<std::map<std::string, Column>>);
static_assert(HasArrayLeaf<std::optional<Column>>);
static_assert(HasArrayLeaf<std::tuple<int, Column>>);
static_assert(HasArrayLeaf<std::tuple<const Column&, int>>, "what a tuple refers to counts");
static_assert(HasArrayLeaf<std::pair<Column, std::string>>);
static_assert(HasArrayLeaf<std::array<Column, 2>>);
static_assert(HasArrayLeaf<std::variant<std::monostate, std::string, Column>>);
static_assert(HasArrayLeaf<std::variant<const Column, int>>);
static_assert(HasArrayLeaf<std::vector<std::variant<int, std::variant<std::map<int, Column>>>>>);
static_assert(HasArrayLeaf<std::map<int, std::vector<std::optional<std::tuple<int, Columns>>>>>);

static_assert(!HasArrayLeaf<int>);
static_assert(!HasArrayLeaf<std::string>);
static_assert(!HasArrayLeaf<NamedValues>);
static_assert(!HasArrayLeaf<fanout::Dict<>>);
static_assert(!HasArrayLeaf<std::vector<std::string>>);
static_assert(!HasArrayLeaf<std::span<const std::string>>);
static_assert(!HasArrayLeaf<std::map<std::string, int>>);
static_assert(!HasArrayLeaf<std::tuple<>>);
static_assert(!HasArrayLeaf<std::tuple<int, std::optional<int>>>);
static_assert(!HasArrayLeaf<std::array<Column, 0>>);
static_assert(!HasArrayLeaf<std::variant<std::monostate, std::vector<std::string>>>);
static_assert(!HasArrayLeaf<OneNumber>);
static_assert(!HasArrayLeaf<Column*>);

struct WithColumn {
  int a;
  Column column;
};
struct ColumnFirst {
  Column column;
  int a;
};
/// Members of members are not taken for members, though their braces may be left out.
struct Deep {
  OneNumber plain;
  std::vector<int> numbers;
  WithColumn with;
};
struct DeepAlone {
  WithColumn with;
};
struct Containing {
  std::map<int, std::vector<std::optional<WithColumn>>> map;
};
struct DerivedWithColumn : WithColumn {};
struct ColumnsOfC {
  int a;
  Column columns[2];
};
struct NoDefaultAround {
  int& first;
  Column column;
  int& last;
};
struct Pointing {
  Column* pointer;
  const char* text;
};
struct Recursive {
  int a;
  std::vector<Recursive> children;
  std::map<int, Recursive> by_number;
};
struct RecursiveWithColumn {
  std::vector<RecursiveWithColumn> children;
  Column column;
};
struct RecursiveByVariant {
  std::variant<int, std::vector<RecursiveByVariant>> number_or_children;
};
struct HoldsRecursive {
  Recursive recursive;
};
/// What no structured binding takes apart.
struct Unnamed {
  int bits : 3;
  union {
    int number;
    float real;
  };
  char text[100];
};

static_assert(HasArrayLeaf<WithColumn>);
static_assert(HasArrayLeaf<ColumnFirst>);
static_assert(HasArrayLeaf<Deep>);
static_assert(HasArrayLeaf<DeepAlone>);
static_assert(HasArrayLeaf<Containing>);
static_assert(HasArrayLeaf<std::tuple<int, std::vector<Deep>>>);
static_assert(HasArrayLeaf<ListedColumn>);
static_assert(HasArrayLeaf<DerivedWithColumn>, "found, though it cannot be taken apart");
static_assert(HasArrayLeaf<ColumnsOfC>);
static_assert(HasArrayLeaf<RecursiveWithColumn>);
static_assert(!HasArrayLeaf<DerivedNumber>);
static_assert(!HasArrayLeaf<HiddenColumn>, "nobody can look into it");
static_assert(!HasArrayLeaf<WrappedColumn>);
static_assert(!HasArrayLeaf<Pointing>);
static_assert(!HasArrayLeaf<Recursive>);
static_assert(!HasArrayLeaf<RecursiveByVariant>);
static_assert(!HasArrayLeaf<HoldsRecursive>);
static_assert(!HasArrayLeaf<Unnamed>);

template <class X>
constexpr bool inside_itself = fanout::detail::InsideItself<X, false>;
static_assert(inside_itself<Recursive> && inside_itself<RecursiveWithColumn> && inside_itself<RecursiveByVariant>);
static_assert(!inside_itself<HoldsRecursive> && !inside_itself<Deep> && !inside_itself<std::vector<Recursive>>);
static_assert(fanout::detail::InsideItself<Recursive, true>, "by way of its map");
static_assert(HasArrayLeaf<NoDefaultAround>);

}  // namespace
