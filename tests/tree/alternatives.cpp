// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/tree/alternatives.hpp>  // first: it does not need <variant>

#include <any>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

using fanout::detail::AlternativesOf;
using fanout::detail::at_alternative;
using fanout::detail::HasAlternatives;

namespace {

/// No variant of its own parameters, though it is one of others.
template <class... T>
struct WithNumber : std::variant<int, T...> {};
struct Named : std::variant<int, float> {};

/// A variant that is not std::variant.
template <class A, class B>
struct EitherOf {
  A a;
  B b;
  bool second;
  bool valueless_by_exception() const { return false; }
  std::size_t index() const { return second ? 1 : 0; }
};
template <std::size_t I, class A, class B>
auto get_if(const EitherOf<A, B>* x) {
  if constexpr (I == 0) {
    return &x->a;
  } else {
    return &x->b;
  }
}
static_assert(HasAlternatives<std::variant<int>>);
static_assert(HasAlternatives<std::variant<std::monostate, std::string, std::vector<int>>>);
static_assert(HasAlternatives<std::variant<int, int>>, "also the same one twice");
static_assert(HasAlternatives<std::variant<const int, float>>);
static_assert(HasAlternatives<EitherOf<int, std::string>>);
static_assert(!HasAlternatives<WithNumber<float>>);
static_assert(!HasAlternatives<Named>);
static_assert(!HasAlternatives<std::monostate>);
static_assert(!HasAlternatives<std::optional<int>>);
static_assert(!HasAlternatives<std::tuple<int>>);
static_assert(!HasAlternatives<std::any>);
static_assert(!HasAlternatives<int>);

using Variant = std::variant<int, const float, std::string, int>;
static_assert(AlternativesOf<Variant>::size == 4);
static_assert(std::is_same_v<AlternativesOf<Variant>::type<0>, int>);
static_assert(std::is_same_v<AlternativesOf<Variant>::type<1>, const float>);
static_assert(std::is_same_v<AlternativesOf<Variant>::type<3>, int>);

}  // namespace

TEST_CASE("the alternative that a variant holds is found and not copied") {
  // One by one: nvcc fails on a list of them.
  std::vector<Variant> variants;
  variants.emplace_back(std::in_place_index<0>, 1);
  variants.emplace_back(std::in_place_index<1>, 1.0F);
  variants.emplace_back(std::in_place_index<2>, "text");
  variants.emplace_back(std::in_place_index<3>, 4);
  for (const Variant& variant : variants) {
    const auto address = at_alternative(variant, [&](auto place) -> const void* {
      constexpr std::size_t at = decltype(place)::value;
      CHECK(at == variant.index());
      CHECK(&AlternativesOf<Variant>::get<at>(variant) == std::get_if<at>(&variant));
      return &AlternativesOf<Variant>::get<at>(variant);
    });
    CHECK(address >= static_cast<const void*>(&variant));
    CHECK(address < static_cast<const void*>(&variant + 1));
  }
}

TEST_CASE("a type with the interface of std::variant is a variant") {
  const EitherOf<int, std::string> either{1, "two", true};
  const auto text = at_alternative(either, [&](auto place) {
    if constexpr (decltype(place)::value == 0) {
      return std::string("the first");
    } else {
      return AlternativesOf<EitherOf<int, std::string>>::get<1>(either);
    }
  });
  CHECK(text == "two");
}
