// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fanout/plan/any_split.hpp>
#include <fanout/plan/call_times.hpp>

using fanout::AnySplit;
using fanout::EvenSplit;
using fanout::Plan;

static_assert(fanout::Split<AnySplit>);

namespace {

static_assert(std::is_convertible_v<EvenSplit, AnySplit>);
static_assert(!std::is_constructible_v<AnySplit, int>);
static_assert(std::is_nothrow_destructible_v<AnySplit>);

/// All rows on one device; its copies count themselves.
struct OnDevice {
  std::size_t device = 0;
  std::shared_ptr<int> alive = std::make_shared<int>(0);
  Plan operator()(std::size_t rows, std::size_t) const { return {{{0, rows}, device}}; }
};

struct NotToBeCopied {
  NotToBeCopied() = default;
  NotToBeCopied(NotToBeCopied&&) = default;
  NotToBeCopied(const NotToBeCopied&) { throw std::runtime_error("copied"); }
  NotToBeCopied& operator=(const NotToBeCopied&) = default;
  Plan operator()(std::size_t rows, std::size_t) const { return {{{0, rows}, 0}}; }
};

/// All rows on the device after that of the last call.
struct OnNext {
  std::size_t next = 0;
  Plan operator()(std::size_t rows, std::size_t devices) const { return {{{0, rows}, next % devices}}; }
  void observe(const fanout::CallTimes& call) { next = (*call.plan)[0].device + 1; }
};

Plan on_the_last(std::size_t rows, std::size_t devices) { return {{{0, rows}, devices - 1}}; }

}  // namespace

TEST_CASE("a split of any type splits evenly if nothing else was said") {
  CHECK(AnySplit()(30, 4) == EvenSplit{}(30, 4));
  CHECK(AnySplit()(0, 4) == EvenSplit{}(0, 4));
}

TEST_CASE("a split of any type asks the policy that it holds") {
  const AnySplit object = OnDevice{.device = 2};
  CHECK(object(7, 3) == Plan{{{0, 7}, 2}});

  const AnySplit lambda = [](std::size_t rows, std::size_t devices) { return Plan{{{0, rows + devices}, 0}}; };
  CHECK(lambda(7, 3) == Plan{{{0, 10}, 0}});

  const AnySplit function = &on_the_last;
  CHECK(function(7, 3) == Plan{{{0, 7}, 2}});

  OnDevice policy{.device = 1};
  const AnySplit copied = policy;
  policy.device = 5;
  CHECK(copied(7, 3) == Plan{{{0, 7}, 1}});
}

TEST_CASE("a split of any type knows whether it is the even one") {
  CHECK(AnySplit().is_even());
  CHECK(AnySplit(EvenSplit{}).is_even());
  AnySplit split = OnDevice{.device = 1};
  CHECK_FALSE(split.is_even());
  CHECK_FALSE(AnySplit(split).is_even());
  split = EvenSplit{};
  CHECK(split.is_even());
  CHECK(split(5, 2) == EvenSplit{}(5, 2));
}

TEST_CASE("copies of a split of any type hold policies of their own") {
  const OnDevice policy{.device = 1};
  {
    AnySplit a = policy;
    CHECK(policy.alive.use_count() == 2);
    AnySplit b = a;
    CHECK(policy.alive.use_count() == 3);
    a = EvenSplit{};
    CHECK(policy.alive.use_count() == 2);
    CHECK(a(4, 2) == EvenSplit{}(4, 2));
    CHECK(b(4, 2) == Plan{{{0, 4}, 1}});
    a = b;
    CHECK(policy.alive.use_count() == 3);
    CHECK(a(4, 2) == Plan{{{0, 4}, 1}});
    const AnySplit& same = a;
    a = same;
    CHECK(a(4, 2) == Plan{{{0, 4}, 1}});
    CHECK(policy.alive.use_count() == 3);
  }
  CHECK(policy.alive.use_count() == 1);
}

TEST_CASE("a split of any type that was moved from can still be asked") {
  AnySplit a = OnDevice{.device = 1};
  AnySplit b = std::move(a);
  CHECK(a(4, 2) == Plan{{{0, 4}, 1}});  // NOLINT(bugprone-use-after-move): this is what is tested
  CHECK(b(4, 2) == Plan{{{0, 4}, 1}});
  b = std::move(a);
  CHECK(a(4, 2) == Plan{{{0, 4}, 1}});  // NOLINT(bugprone-use-after-move)
}

TEST_CASE("a policy whose copy throws leaves the assigned split as it was") {
  const AnySplit throws = NotToBeCopied{};
  AnySplit target = OnDevice{.device = 1};
  CHECK_THROWS_WITH_AS(target = throws, "copied", std::runtime_error);
  CHECK(target(4, 2) == Plan{{{0, 4}, 1}});
  CHECK(throws(4, 2) == Plan{{{0, 4}, 0}});
}

TEST_CASE("a split shows calls to a policy that observes") {
  const Plan ran{{{0, 5}, 1}};
  const fanout::CallTimes call{.plan = &ran};
  AnySplit split = OnNext{};
  CHECK(split.observes());
  CHECK(split(7, 4) == Plan{{{0, 7}, 0}});
  AnySplit before = split;
  split.observe(call);
  CHECK(split(7, 4) == Plan{{{0, 7}, 2}});
  CHECK(before(7, 4) == Plan{{{0, 7}, 0}});  // a policy of its own
  before = split;
  CHECK(before(7, 4) == Plan{{{0, 7}, 2}});  // with what it has learnt
  REQUIRE(split.get_if<OnNext>() != nullptr);
  CHECK(split.get_if<OnNext>()->next == 2);
  CHECK(split.get_if<OnDevice>() == nullptr);
}

TEST_CASE("a policy without observe rests") {
  const Plan ran{{{0, 5}, 1}};
  const fanout::CallTimes call{.plan = &ran};
  AnySplit even;
  CHECK_FALSE(even.observes());
  even.observe(call);
  CHECK(even(5, 2) == EvenSplit{}(5, 2));
  CHECK(even.get_if<EvenSplit>() == nullptr);
  AnySplit object = OnDevice{.device = 2};
  CHECK_FALSE(object.observes());
  object.observe(call);
  CHECK(object(7, 3) == Plan{{{0, 7}, 2}});
}
