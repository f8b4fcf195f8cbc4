// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/dict.hpp>

using fanout::dict;
using namespace fanout::literals;

namespace {

constexpr auto numbers = dict("one"_k = 1, "half"_k = 0.5);
static_assert(numbers["one"_k] == 1);
static_assert(numbers["half"_k] == 0.5);
static_assert(numbers.size() == 2);
static_assert(numbers.contains("one"_k));
static_assert(!numbers.contains("on"_k));
static_assert(!numbers.contains("ones"_k));
static_assert(dict().size() == 0);
static_assert(!dict().contains("one"_k));
static_assert(std::is_aggregate_v<decltype(dict("a"_k = 1))>);

static_assert(numbers == dict("one"_k = 1, "half"_k = 0.5));
static_assert(numbers != dict("one"_k = 2, "half"_k = 0.5));
static_assert(numbers != dict("one"_k = 1, "half"_k = 0.25));
static_assert(dict() == dict());

template <class A, class B>
concept Comparable = requires(const A& a, const B& b) {
  a == b;
};
static_assert(Comparable<decltype(dict("a"_k = 1)), decltype(dict("a"_k = 2))>);
static_assert(!Comparable<decltype(dict("a"_k = 1)), decltype(dict("b"_k = 1))>, "other keys, another type");

constexpr auto nested = dict("image"_k = dict("output"_k = 3, "noise"_k = 4L), "scalar"_k = 5);
static_assert(nested["image"_k]["noise"_k] == 4L);
static_assert(nested["image"_k]["output"_k] == 3);
static_assert(nested == dict("image"_k = dict("output"_k = 3, "noise"_k = 4L), "scalar"_k = 5));
static_assert(nested != dict("image"_k = dict("output"_k = 3, "noise"_k = 0L), "scalar"_k = 5));

using Strings = decltype(dict("a"_k = std::string(), "b"_k = 1));
using A = decltype("a"_k);
static_assert(std::is_same_v<decltype(std::declval<Strings&>()[A{}]), std::string&>);
static_assert(std::is_same_v<decltype(std::declval<const Strings&>()[A{}]), const std::string&>);
static_assert(std::is_same_v<decltype(std::declval<Strings>()[A{}]), std::string&&>);
static_assert(std::is_same_v<decltype(std::declval<const Strings>()[A{}]), const std::string&>);

using OneTuple = decltype(dict("t"_k = std::tuple<int>(7)));
static_assert(std::is_same_v<decltype(std::declval<OneTuple&>()["t"_k]), std::tuple<int>&>,
              "a tuple as the only value is not taken apart");

}  // namespace

TEST_CASE("a dict's values are read and written by their keys") {
  auto values = dict("text"_k = std::string("one"), "number"_k = 1);
  values["text"_k] += "!";
  ++values["number"_k];
  CHECK(values["text"_k] == "one!");
  CHECK(std::as_const(values)["number"_k] == 2);
  CHECK(std::get<0>(values.values) == "one!");
}

TEST_CASE("nested dicts are written through") {
  auto tree = dict("image"_k = dict("noise"_k = std::string("n")), "scalar"_k = 5);
  tree["image"_k]["noise"_k] = "m";
  CHECK(tree["image"_k]["noise"_k] == "m");
  CHECK(tree == dict("image"_k = dict("noise"_k = std::string("m")), "scalar"_k = 5));
}

TEST_CASE("a dict that is going away gives up its values") {
  auto owner = dict("p"_k = std::make_unique<int>(5), "q"_k = std::make_unique<int>(6));
  const std::unique_ptr<int> taken = std::move(owner)["p"_k];
  CHECK(*taken == 5);
  CHECK(*std::as_const(owner)["q"_k] == 6);  // NOLINT(bugprone-use-after-move): only one value was taken
  CHECK(*dict("r"_k = std::make_unique<int>(7))["r"_k] == 7);
}

TEST_CASE("a dict owns its values: copies of it are independent") {
  std::string text = "a text that is long enough to stand on the heap";
  const auto first = dict("t"_k = text);
  text[0] = 'X';
  auto second = first;
  second["t"_k][0] = 'b';
  CHECK(first["t"_k][0] == 'a');
  CHECK(second["t"_k][0] == 'b');
  CHECK(first != second);
  second = first;
  CHECK(first == second);
}
