// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/waiting/wait_policy.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using fanout::Waiting;
using fanout::WaitPolicy;
using fanout::WaitRules;

namespace {

struct Patient {
  static constexpr WaitRules rules{.spin = 200'000};
};
struct NoRules {};
struct OtherRules {
  static constexpr int rules = 1;
};

}  // namespace

TEST_CASE("wait policies are types with rules") {
  CHECK(WaitPolicy<fanout::Spin>);
  CHECK(WaitPolicy<fanout::Park>);
  CHECK(WaitPolicy<fanout::Adaptive>);
  CHECK(WaitPolicy<Patient>);
  CHECK_FALSE(WaitPolicy<NoRules>);
  CHECK_FALSE(WaitPolicy<OtherRules>);
  CHECK_FALSE(WaitPolicy<int>);
}

TEST_CASE("a policy as a value keeps its rules") {
  const Waiting patient = Patient{};
  CHECK(&patient.rules() == &Patient::rules);
  CHECK(patient.rules().spin == 200'000);
  CHECK(patient == Waiting(Patient{}));
  CHECK_FALSE(patient == Waiting(fanout::Spin{}));
  CHECK(fanout::Spin::rules.spin == WaitRules::forever);
  CHECK(fanout::Park::rules.spin == 0);
}

TEST_CASE("rules are packed in one word, with times in steps of 64 ns") {
  using fanout::detail::RulesWord;
  for (const WaitRules& rules : {fanout::Spin::rules, fanout::Park::rules, fanout::Adaptive::rules, Patient::rules}) {
    const WaitRules back = RulesWord::rules(RulesWord::of(rules));
    CHECK(back.spin >= rules.spin);
    CHECK(back.spin - rules.spin < 64);
    CHECK(back.longest_spin >= rules.longest_spin);
    CHECK(back.longest_spin - rules.longest_spin < 64);
    CHECK(back.predicts == rules.predicts);
    CHECK(back.inlines_small == rules.inlines_small);
    CHECK(RulesWord::of(back) == RulesWord::of(rules));
  }
  constexpr WaitRules odd = RulesWord::rules(RulesWord::of({.spin = 1, .longest_spin = 600'000'000'000}));
  static_assert(odd.spin == 64);
  static_assert(odd.longest_spin == WaitRules::forever);
  static_assert(RulesWord::rules(RulesWord::of({.spin = -1})).spin == 0);
  static_assert(RulesWord::rules(RulesWord::of({.predicts = true})).predicts);
  static_assert(!RulesWord::rules(RulesWord::of({.predicts = true})).inlines_small);
}
