// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <type_traits>

#include <fanout/base/any_function.hpp>

using fanout::detail::AnyFunction;

namespace {

using Function = AnyFunction<int(int)>;
static_assert(std::is_convertible_v<int (*)(int), Function>);
static_assert(!std::is_constructible_v<Function, int>);
static_assert(!std::is_constructible_v<Function, int* (*)(int)>);

int twice(int x) { return 2 * x; }

}  // namespace

TEST_CASE("a function of any type is empty, or calls what it holds") {
  Function function;
  CHECK_FALSE(function);
  const Function none = function;
  CHECK_FALSE(none);
  function = twice;
  REQUIRE(function);
  CHECK(function(4) == 8);
  function = [add = 3](int x) { return x + add; };
  CHECK(function(4) == 7);
  function = none;
  CHECK_FALSE(function);
}

TEST_CASE("copies of a function of any type hold copies, and each goes once") {
  const auto counted = std::make_shared<int>(5);
  {
    const Function first = [counted](int x) { return x + *counted; };
    CHECK(counted.use_count() == 2);
    Function second = first;
    CHECK(counted.use_count() == 3);
    CHECK(second(1) == 6);
    second = Function();
    CHECK(counted.use_count() == 2);
    CHECK(first(1) == 6);
  }
  CHECK(counted.use_count() == 1);
}

TEST_CASE("arguments arrive as they were passed") {
  const AnyFunction<void(std::unique_ptr<int>, int&)> take = [](std::unique_ptr<int> from, int& to) { to = *from; };
  int to = 0;
  take(std::make_unique<int>(4), to);
  CHECK(to == 4);
}
