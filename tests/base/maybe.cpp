// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/maybe.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

using fanout::Maybe;

TEST_CASE("there is nothing, or what was put there") {
  Maybe<std::string> text;
  CHECK_FALSE(text.has_value());
  CHECK(text.value_or("other") == "other");
  text = std::string("text");
  REQUIRE(text);
  CHECK(*text == "text");
  CHECK(text->size() == 4);
  CHECK(text.value_or("other") == "text");
  CHECK(text.emplace(3U, 'x') == "xxx");
  text.reset();
  CHECK_FALSE(text.has_value());
}

TEST_CASE("copies and moves have a value of their own, and each goes once") {
  const auto counted = std::make_shared<int>(7);
  {
    const Maybe<std::shared_ptr<int>> first(counted);
    Maybe<std::shared_ptr<int>> second = first;
    CHECK(counted.use_count() == 3);
    Maybe<std::shared_ptr<int>> third = std::move(second);
    CHECK(counted.use_count() == 3);
    second = third;
    CHECK(counted.use_count() == 4);
    second = std::move(third);
    CHECK(counted.use_count() == 3);
    second = Maybe<std::shared_ptr<int>>();
    CHECK(counted.use_count() == 2);
    Maybe<std::shared_ptr<int>>& same = second;
    second = same;
    CHECK_FALSE(second);
  }
  CHECK(counted.use_count() == 1);
}

TEST_CASE("two are equal if both have nothing, or equal values") {
  CHECK(Maybe<int>() == Maybe<int>());
  CHECK(Maybe<int>(3) == 3);
  CHECK_FALSE(Maybe<int>(3) == 4);
  CHECK_FALSE(Maybe<int>() == 0);
}

TEST_CASE("a copy that throws leaves what was assigned to as it was") {
  struct Brittle {
    int value = 0;
    explicit Brittle(int x) : value(x) {}
    Brittle(const Brittle&) { throw std::runtime_error("copied"); }
    Brittle(Brittle&&) = default;
    Brittle& operator=(const Brittle&) = delete;
  };
  Maybe<Brittle> kept;
  kept.emplace(1);
  Maybe<Brittle> from;
  from.emplace(2);
  CHECK_THROWS_AS(kept = from, std::runtime_error);
  CHECK(kept->value == 1);
}
