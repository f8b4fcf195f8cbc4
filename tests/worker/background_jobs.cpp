// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fanout/worker/background_jobs.hpp>

#include "support/threads_of_process.hpp"

using fanout::detail::BackgroundJobs;
using fanout_test::count_settled_threads;
using fanout_test::count_threads;
using fanout_test::has_threads;

namespace {

template <class Run>
bool runs_behind(BackgroundJobs<int, Run>& jobs, int job) {
  return jobs.add(job);
}

}  // namespace

TEST_CASE("jobs run in order on one other thread, which is there from the first job to the destructor") {
  const std::size_t before = count_settled_threads();
  std::vector<int> ran;
  std::vector<std::thread::id> threads;
  {
    BackgroundJobs<int, std::function<void(int)>> jobs([&](int job) {
      ran.push_back(job);
      threads.push_back(std::this_thread::get_id());
    });
    CHECK(count_threads() == before);
    jobs.wait();
    CHECK(jobs.ready());
    for (int job = 0; job < 100; ++job) {
      CHECK(runs_behind(jobs, job));
      if (job % 10 == 0) jobs.wait();
    }
    jobs.wait();
    CHECK(jobs.ready());
    CHECK(count_threads() == before + 1);
  }
  CHECK(has_threads(before));
  REQUIRE(ran.size() == 100);
  for (int job = 0; job < 100; ++job) {
    CHECK(ran[static_cast<std::size_t>(job)] == job);
    CHECK(threads[static_cast<std::size_t>(job)] == threads[0]);
  }
  CHECK(threads[0] != std::this_thread::get_id());
}

TEST_CASE("what a job throws is thrown once, later jobs are dropped, and the next ones run") {
  std::vector<int> ran;
  std::atomic<bool> may_throw{false};
  const auto run = [&](int job) {
    while (!may_throw) std::this_thread::yield();
    if (job == 1) throw std::runtime_error("job 1");
    ran.push_back(job);
  };
  BackgroundJobs<int, decltype(run)> jobs(run);
  for (int job = 0; job < 4; ++job) CHECK(runs_behind(jobs, job));
  CHECK_FALSE(jobs.ready());
  may_throw = true;
  CHECK_THROWS_WITH_AS(jobs.wait(), "job 1", std::runtime_error);
  CHECK(ran == std::vector{0});
  jobs.wait();
  CHECK(runs_behind(jobs, 5));
  jobs.wait();
  CHECK(ran == std::vector{0, 5});
}

TEST_CASE("a job is refused with what an earlier one has thrown") {
  const auto run = [](int) { throw std::runtime_error("early"); };
  BackgroundJobs<int, decltype(run)> jobs(run);
  CHECK(runs_behind(jobs, 0));
  while (!jobs.ready()) std::this_thread::yield();
  CHECK_THROWS_WITH_AS(runs_behind(jobs, 1), "early", std::runtime_error);
  CHECK(jobs.ready());
  jobs.wait();  // it was thrown already
}

TEST_CASE("a job that has begun is waited for") {
  std::atomic<bool> begun{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> ended{false};
  const auto run = [&](int) {
    begun = true;
    while (!may_end) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ended = true;
  };
  BackgroundJobs<int, decltype(run)> jobs(run);
  CHECK(runs_behind(jobs, 0));
  while (!begun) std::this_thread::yield();
  CHECK_FALSE(jobs.ready());
  may_end = true;
  jobs.wait();
  CHECK(ended);
}

TEST_CASE("the destructor waits for the job that has begun, and drops the others") {
  std::atomic<bool> begun{false};
  std::atomic<int> ran{0};
  const auto run = [&](int) {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++ran;
  };
  {
    BackgroundJobs<int, decltype(run)> jobs(run);
    for (int job = 0; job < 3; ++job) CHECK(runs_behind(jobs, job));
    while (!begun) std::this_thread::yield();
  }
  CHECK(ran == 1);
}

TEST_CASE("jobs run under the floating-point modes of the thread that added them") {
  std::vector<int> modes;
  BackgroundJobs<int, std::function<void(int)>> jobs([&](int) { modes.push_back(std::fegetround()); });
  for (const int mode : {FE_UPWARD, FE_TONEAREST, FE_DOWNWARD}) {
    std::fesetround(mode);
    CHECK(runs_behind(jobs, 0));
  }
  std::fesetround(FE_TONEAREST);
  jobs.wait();
  CHECK(modes == std::vector<int>{FE_UPWARD, FE_TONEAREST, FE_DOWNWARD});
}
