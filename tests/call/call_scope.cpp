// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/call/call_scope.hpp>

#include <doctest/doctest.h>

#include <thread>

using fanout::detail::CallScope;
using fanout::detail::current_call;
using fanout::detail::EnteredScope;
using fanout::detail::find_original;
using fanout::detail::holds_replica;

TEST_CASE("a thread is outside of every call until it enters a scope, and again afterwards") {
  CHECK(current_call() == nullptr);
  const CallScope outer;
  {
    const EnteredScope entered_outer(outer);
    CHECK(current_call() == &outer);
    {
      const CallScope inner{.caller = &outer};
      const EnteredScope entered_inner(inner);
      CHECK(current_call() == &inner);
    }
    CHECK(current_call() == &outer);
  }
  CHECK(current_call() == nullptr);
}

TEST_CASE("each thread has a chain of its own") {
  const CallScope mine;
  const EnteredScope entered(mine);
  const CallScope* other = &mine;
  std::thread([&other] { other = current_call(); }).join();
  CHECK(other == nullptr);
  CHECK(current_call() == &mine);
}

TEST_CASE("the innermost scope of a model is found from any depth, and none of a model that is not called") {
  const int a = 0;
  const int b = 0;
  const int c = 0;
  const CallScope update{.original = &a, .updating = true};
  const CallScope middle{.caller = &update, .original = &b};
  const CallScope again{.caller = &middle, .original = &a};
  CHECK(find_original(&again, &a) == &again);
  CHECK(find_original(&again, &b) == &middle);
  CHECK(find_original(&middle, &a) == &update);
  CHECK(find_original(&again, &c) == nullptr);
  CHECK(find_original(nullptr, &a) == nullptr);
}

TEST_CASE("a replica is held if any scope of the chain holds it") {
  const int a = 0;
  const int b = 0;
  const CallScope shared{.original = &a};
  const CallScope own{.caller = &shared, .original = &b, .busy = true};
  const CallScope inner{.caller = &own, .original = &a};
  CHECK(holds_replica(&own, &b));
  CHECK(holds_replica(&inner, &b));
  CHECK_FALSE(holds_replica(&inner, &a));
  CHECK_FALSE(holds_replica(&shared, &b));
  CHECK_FALSE(holds_replica(nullptr, &a));
}
