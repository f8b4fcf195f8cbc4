// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <stdexcept>
#include <utility>

#include <fanout/device/completion.hpp>

using fanout::backend::Completion;

namespace {

Completion counting(int& waits) {
  return {[](void* what) { ++*static_cast<int*>(what); }, &waits};
}

}  // namespace

TEST_CASE("a completion waits only once") {
  int waits = 0;
  {
    Completion completion = counting(waits);
    CHECK(static_cast<bool>(completion));
    completion.wait();
    CHECK(waits == 1);
    CHECK_FALSE(static_cast<bool>(completion));
    completion.wait();
  }
  CHECK(waits == 1);
}

TEST_CASE("a completion that nobody waited for waits when it is destroyed, also after a move") {
  int waits = 0;
  {
    Completion completion = counting(waits);
    Completion other(std::move(completion));
    CHECK_FALSE(static_cast<bool>(completion));
    completion = std::move(other);
  }
  CHECK(waits == 1);
  { const Completion nothing; }
}

TEST_CASE("a failure is thrown by wait and never by the destructor") {
  const auto failing = [] { return Completion([](void*) { throw std::runtime_error("failed"); }, nullptr); };
  Completion completion = failing();
  CHECK_THROWS_AS(completion.wait(), std::runtime_error);
  CHECK_NOTHROW([&] { const Completion dropped = failing(); }());
}
