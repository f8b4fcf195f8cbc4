// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/device/wait_policy.hpp>

#include <doctest/doctest.h>

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
