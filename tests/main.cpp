// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main program of every test executable: doctest's own, less two ways to pass in silence.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "support/skip.hpp"

namespace {
unsigned tests_chosen = 0;
unsigned tests_skipped = 0;
unsigned tests_failed = 0;
unsigned skipped_last = 0;  // the number of the test that said so last
unsigned tests_begun = 0;

// What .ci/stages adds up, since CTest sees one test where a program runs many.
void report_counts() {
  std::printf("tests: %u passed, %u failed, %u skipped\n", tests_chosen - tests_failed - tests_skipped, tests_failed,
              tests_skipped);
}

struct CountTests : doctest::IReporter {
  explicit CountTests(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    tests_chosen = stats.numTestCasesPassingFilters;
    tests_failed = stats.numTestCasesFailed;
  }
  void test_case_start(const doctest::TestCaseData&) override { ++tests_begun; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_LISTENER("count_tests", 1, CountTests);
}  // namespace

void fanout_test::skip(const char* why) {
  std::printf("SKIPPED: %s\n", why);
  if (skipped_last != tests_begun) ++tests_skipped;
  skipped_last = tests_begun;
}

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit()) return result;  // only a query such as --list-test-cases
  if (tests_chosen == 0) {
    std::puts("no test has this name");  // else a misspelt filter would pass
    return 1;
  }
  report_counts();
  if (result != 0) return result;
  return tests_skipped == tests_chosen ? fanout_test::skip_return_code : 0;
}
