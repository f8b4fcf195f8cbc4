// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/call/call_chain.hpp>

#include <doctest/doctest.h>

#include <thread>

using fanout::detail::CallLink;
using fanout::detail::current_link;
using fanout::detail::EnteredLink;
using fanout::detail::find_original;
using fanout::detail::keeps_busy;

TEST_CASE("a thread is outside of every call until it enters a link, and again afterwards") {
  CHECK(current_link() == nullptr);
  const CallLink outer;
  {
    const EnteredLink entered_outer(outer);
    CHECK(current_link() == &outer);
    {
      const CallLink inner{.caller = &outer};
      const EnteredLink entered_inner(inner);
      CHECK(current_link() == &inner);
    }
    CHECK(current_link() == &outer);
  }
  CHECK(current_link() == nullptr);
}

TEST_CASE("each thread has a chain of its own") {
  const CallLink mine;
  const EnteredLink entered(mine);
  const CallLink* other = &mine;
  std::thread([&other] { other = current_link(); }).join();
  CHECK(other == nullptr);
  CHECK(current_link() == &mine);
}

TEST_CASE("the innermost link of a model is found from any depth, and none of a model that is not called") {
  const int a = 0;
  const int b = 0;
  const int c = 0;
  const CallLink update{.original = &a, .updating = true};
  const CallLink middle{.caller = &update, .original = &b};
  const CallLink again{.caller = &middle, .original = &a};
  CHECK(find_original(&again, &a) == &again);
  CHECK(find_original(&again, &b) == &middle);
  CHECK(find_original(&middle, &a) == &update);
  CHECK(find_original(&again, &c) == nullptr);
  CHECK(find_original(nullptr, &a) == nullptr);
}

TEST_CASE("a chain keeps a model busy if any of its links runs on a replica that it has for itself") {
  const int a = 0;
  const int b = 0;
  const CallLink shared{.original = &a};
  const CallLink own{.caller = &shared, .original = &b, .busy = true};
  const CallLink inner{.caller = &own, .original = &a};
  CHECK(keeps_busy(&own, &b));
  CHECK(keeps_busy(&inner, &b));
  CHECK_FALSE(keeps_busy(&inner, &a));
  CHECK_FALSE(keeps_busy(&shared, &b));
  CHECK_FALSE(keeps_busy(nullptr, &a));
}
