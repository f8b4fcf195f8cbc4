// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/gather/gather.hpp>

namespace {

using fanout::Dict;
using fanout::Key;
using fanout::Tensor;
using fanout::detail::Alternative;
using fanout::detail::CannotHold;
using fanout::detail::EachValue;
using fanout::detail::Element;
using fanout::detail::Entry;
using fanout::detail::LeafAt;
using fanout::detail::NotTaken;
using fanout::detail::Ungatherable;
using fanout::detail::WithRule;
namespace rules = fanout::rules;

/// Not to be gathered: nobody can look into it.
class Plain {
  [[maybe_unused]] std::string text_;
};
struct Inner {
  std::vector<int> numbers;
  float mean;
  const char* text;
};
struct Outer {
  Tensor<int, 1> rows;
  Inner inner;
};
struct HoldsPlain {
  Tensor<int, 1> rows;
  Plain plain;
};
struct HoldsVariant {
  std::variant<float> v;
};
struct HoldsSpan {
  std::span<Tensor<int, 1>> s;
};
struct Referring {
  const Tensor<int, 1>& rows;
};
using KeyA = Key<'a'>;

template <class X>
using found = fanout::detail::find_ungatherable_t<rules::Concatenate, X, LeafAt<>>;

template <class X, class Expected>
constexpr bool finds = std::is_same_v<found<X>, Expected>;

}  // namespace

TEST_CASE("no fault is found in a gatherable type") {
  static_assert(finds<float, void>);
  static_assert(finds<const std::vector<std::string>&, void>);
  static_assert(finds<std::vector<Plain>, void> && finds<std::span<const Plain>, void>, "each is a row");
  static_assert(finds<std::tuple<std::map<int, std::optional<float>>, Dict<Entry<KeyA, std::string>>>, void>);
  static_assert(finds<WithRule<rules::Mean, std::vector<float>>, void>);
  CHECK(fanout::detail::can_be_gathered<found<float>>);
}

TEST_CASE("an ungatherable leaf is found with its type and its place") {
  static_assert(finds<Plain, Ungatherable<Plain, LeafAt<>>>);
  static_assert(finds<const char*, Ungatherable<const char*, LeafAt<>>>);
  static_assert(finds<std::tuple<int, Plain&>, Ungatherable<Plain, LeafAt<Element<1>>>>);
  static_assert(finds<std::array<Plain, 2>, Ungatherable<Plain, LeafAt<EachValue>>>);
  static_assert(finds<Dict<Entry<KeyA, std::pair<int, Plain>>>, Ungatherable<Plain, LeafAt<KeyA, Element<1>>>>);
  static_assert(finds<std::map<int, std::optional<Plain>>, Ungatherable<Plain, LeafAt<EachValue, EachValue>>>);
  static_assert(finds<std::variant<int, Plain>, Ungatherable<Plain, LeafAt<Alternative<1>>>>);
  static_assert(finds<std::tuple<int, std::variant<int, std::pair<int, const char*>>>,
                      Ungatherable<const char*, LeafAt<Element<1>, Alternative<1>, Element<1>>>>);
  static_assert(finds<std::deque<Plain>, Ungatherable<Plain, LeafAt<EachValue>>>);
  static_assert(finds<std::optional<Plain>, Ungatherable<Plain, LeafAt<EachValue>>>);
  CHECK_FALSE(fanout::detail::can_be_gathered<found<Plain>>);
}

TEST_CASE("the first of several ungatherable leaves is found") {
  static_assert(
      finds<std::tuple<int, std::optional<Plain>, const char*>, Ungatherable<Plain, LeafAt<Element<1>, EachValue>>>);
  CHECK_FALSE(fanout::detail::can_be_gathered<found<std::tuple<Plain, Plain>>>);
}

TEST_CASE("a leaf that a rule does not take is found below it, with the rule") {
  static_assert(finds<WithRule<rules::Mean, int>, NotTaken<rules::Mean, int, LeafAt<>>>);
  static_assert(finds<WithRule<rules::Sum, std::variant<float, std::string>>,
                      NotTaken<rules::Sum, std::string, LeafAt<Alternative<1>>>>);
  static_assert(finds<WithRule<rules::Sum, std::string>, NotTaken<rules::Sum, std::string, LeafAt<>>>);
  static_assert(finds<std::tuple<WithRule<rules::Sum, Dict<Entry<KeyA, bool>>>>,
                      NotTaken<rules::Sum, bool, LeafAt<Element<0>, KeyA>>>);
  static_assert(
      finds<WithRule<fanout::rules::Max, std::vector<bool>>, NotTaken<fanout::rules::Max, std::vector<bool>, LeafAt<>>>,
      "though it takes a bool");
  static_assert(finds<fanout::Mean<int>, NotTaken<rules::Mean, int, LeafAt<>>>);
  CHECK_FALSE(fanout::detail::is_taken<found<WithRule<rules::Mean, int>>>);
  CHECK(fanout::detail::is_taken<found<Plain>>);
}

TEST_CASE("an ungatherable type below a rule is found as ungatherable") {
  static_assert(finds<WithRule<rules::Sum, Plain>, Ungatherable<Plain, LeafAt<>>>);
  CHECK(fanout::detail::is_taken<found<WithRule<rules::Sum, Plain>>>);
}

TEST_CASE("a struct member that cannot hold the gathered type is found, with that type") {
  using Mean = Key<'m', 'e', 'a', 'n'>;
  using InnerKey = Key<'i', 'n', 'n', 'e', 'r'>;
  static_assert(finds<Outer, CannotHold<float, Tensor<float, 1>, LeafAt<InnerKey, Mean>>>);
  static_assert(finds<std::tuple<int, std::map<int, Inner>>,
                      CannotHold<float, Tensor<float, 1>, LeafAt<Element<1>, EachValue, Mean>>>);
  static_assert(
      finds<std::variant<std::monostate, Inner>, CannotHold<float, Tensor<float, 1>, LeafAt<Alternative<1>, Mean>>>);
  static_assert(finds<HoldsVariant, CannotHold<std::variant<float>, std::variant<Tensor<float, 1>>, LeafAt<Key<'v'>>>>);
  static_assert(finds<HoldsSpan, CannotHold<std::span<Tensor<int, 1>>, std::vector<Tensor<int, 1>>, LeafAt<Key<'s'>>>>,
                "a span would show what is gone");
  static_assert(finds<HoldsPlain, Ungatherable<Plain, LeafAt<Key<'p', 'l', 'a', 'i', 'n'>>>>);
  static_assert(finds<WithRule<rules::Sum, Inner>, Ungatherable<const char*, LeafAt<Key<'t', 'e', 'x', 't'>>>>);
  static_assert(finds<Referring, CannotHold<const Tensor<int, 1>&, Tensor<int, 1>, LeafAt<Element<0>>>>);
  CHECK_FALSE(fanout::detail::can_be_held<found<Outer>>);
  CHECK(fanout::detail::can_be_gathered<found<Outer>>);
  CHECK(fanout::detail::can_be_held<found<Plain>>);
}

TEST_CASE("a map that may have a key twice is found as a whole") {
  using Multi = std::multimap<int, float>;
  static_assert(finds<Multi, Ungatherable<Multi, LeafAt<>>>);
  CHECK_FALSE(fanout::detail::can_be_gathered<found<Multi>>);
}
