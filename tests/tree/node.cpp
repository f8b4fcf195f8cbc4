// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <complex>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/tree/node.hpp>

#include "tree/shapes.hpp"

using namespace fanout::literals;

namespace {

using fanout_test::Column;

/// An array leaf that looks like a vector, a text and a tuple of trees: being an array goes before all of them.
struct ColumnOfMany {
  using value_type = Column;
  void push_back(Column);
  Column operator[](std::size_t) const;
  std::size_t size() const;
  bool has_value() const;
  Column operator*() const;
  operator std::string_view() const;
};

}  // namespace

template <>
struct fanout::leaf_traits<ColumnOfMany> {
  using piece_type = Column;
  static std::size_t rows(const ColumnOfMany&);
  static piece_type piece(const ColumnOfMany&, std::size_t, std::size_t);
};
template <>
struct std::tuple_size<ColumnOfMany> : std::integral_constant<std::size_t, 2> {};

namespace {

using fanout::DictNode;
using fanout::MapNode;
using fanout::OptionalNode;
using fanout::Scalar;
using fanout::SpanNode;
using fanout::StringNode;
using fanout::StructNode;
using fanout::TupleNode;
using fanout::VariantNode;
using fanout::VectorNode;
using fanout_test::DerivedNumber;
using fanout_test::HiddenColumn;
using fanout_test::ListedColumn;
using fanout_test::NamedValues;
using fanout_test::OneNumber;
using fanout_test::WrappedColumn;

enum class Kind { none, array, scalar, string, dict, map, vector, span, optional, tuple, variant, structure };

/// The first kind that a type fits, and that it fits no other.
template <class X>
constexpr Kind kind() {
  constexpr int fits = fanout::ArrayLeaf<X> + Scalar<X> + StringNode<X> + DictNode<X> + MapNode<X> + VectorNode<X> +
                       SpanNode<X> + OptionalNode<X> + TupleNode<X> + VariantNode<X> + StructNode<X>;
  static_assert(fits <= 1, "more than one kind of node");
  return fanout::ArrayLeaf<X> ? Kind::array
         : Scalar<X>          ? Kind::scalar
         : StringNode<X>      ? Kind::string
         : DictNode<X>        ? Kind::dict
         : MapNode<X>         ? Kind::map
         : VectorNode<X>      ? Kind::vector
         : SpanNode<X>        ? Kind::span
         : OptionalNode<X>    ? Kind::optional
         : TupleNode<X>       ? Kind::tuple
         : VariantNode<X>     ? Kind::variant
         : StructNode<X>      ? Kind::structure
                              : Kind::none;
}

enum class Colour { red };

static_assert(kind<Column>() == Kind::array);
static_assert(kind<ColumnOfMany>() == Kind::array);
static_assert(kind<int>() == Kind::scalar);
static_assert(kind<Colour>() == Kind::scalar);
static_assert(kind<std::complex<float>>() == Kind::scalar);
static_assert(kind<std::string>() == Kind::string);
static_assert(kind<std::string_view>() == Kind::string);
static_assert(kind<const char*>() == Kind::none, "a pointer to letters does not know its length");
static_assert(kind<std::filesystem::path>() == Kind::none);
static_assert(kind<NamedValues>() == Kind::dict);
static_assert(kind<fanout::Dict<>>() == Kind::dict);

static_assert(kind<std::map<std::string, int>>() == Kind::map);
static_assert(kind<std::map<std::string, int, std::less<>>>() == Kind::map);
static_assert(kind<std::unordered_map<int, Column>>() == Kind::map);
static_assert(kind<std::map<int, std::map<int, Column>>>() == Kind::map);
static_assert(kind<std::multimap<int, Column>>() == Kind::none, "a key of a multimap has many trees");
static_assert(kind<std::unordered_multimap<int, Column>>() == Kind::none);
static_assert(kind<std::set<int>>() == Kind::none);

static_assert(kind<std::vector<Column>>() == Kind::vector);
static_assert(kind<std::vector<std::vector<int>>>() == Kind::vector);
static_assert(kind<std::vector<bool>>() == Kind::vector);
static_assert(kind<std::vector<std::unique_ptr<int>>>() == Kind::vector, "also what can only be moved");
static_assert(kind<std::deque<Column>>() == Kind::vector);
static_assert(kind<std::list<Column>>() == Kind::none, "a list has no index");

static_assert(kind<std::span<Column>>() == Kind::span);
static_assert(kind<std::span<const Column, 3>>() == Kind::span);
static_assert(kind<std::shared_ptr<Column>>() == Kind::none);

static_assert(kind<std::optional<int>>() == Kind::optional);
static_assert(kind<std::optional<std::string>>() == Kind::optional);
static_assert(kind<std::optional<std::optional<Column>>>() == Kind::optional);
static_assert(kind<std::unique_ptr<Column>>() == Kind::none);
static_assert(kind<Column*>() == Kind::none);

static_assert(kind<std::tuple<>>() == Kind::tuple);
static_assert(kind<std::tuple<int, Column>>() == Kind::tuple);
static_assert(kind<std::pair<int, Column>>() == Kind::tuple);
static_assert(kind<std::array<Column, 3>>() == Kind::tuple);
static_assert(kind<std::array<int, 0>>() == Kind::tuple);
static_assert(kind<std::array<char, 4>>() == Kind::tuple);

static_assert(kind<std::variant<int, Column>>() == Kind::variant);
static_assert(kind<std::variant<std::monostate>>() == Kind::variant);
static_assert(kind<std::monostate>() == Kind::structure);
static_assert(kind<int[3]>() == Kind::none);

static_assert(kind<OneNumber>() == Kind::structure);
static_assert(kind<ListedColumn>() == Kind::structure);
static_assert(kind<DerivedNumber>() == Kind::none, "it does not list its fields");
static_assert(kind<HiddenColumn>() == Kind::none);
static_assert(kind<WrappedColumn>() == Kind::none, "it says by itself how it is taken");
static_assert(kind<decltype([] {})>() == Kind::none);

}  // namespace
