// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/worker/linux_threads.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

#include <fanout/worker/posix_threads.hpp>

using fanout::detail::LinuxThreads;
using fanout::detail::PosixThreads;

TEST_CASE("a thread can be bound to a core and be named") {
  const std::vector<int> all = LinuxThreads::process_cores();
  REQUIRE_FALSE(all.empty());
  std::thread([&] {
    LinuxThreads::bind({all.back()});
    CHECK(::sched_getcpu() == all.back());
    LinuxThreads::name("a name of too many letters");
    char name[16] = {};
    REQUIRE(::pthread_getname_np(::pthread_self(), name, sizeof name) == 0);
    CHECK(std::string(name) == "a name of too m");
  }).join();
  CHECK(LinuxThreads::process_cores() == all);
}

TEST_CASE("a thread that is bound to no core, or to one that the process does not have, runs where it did") {
  const std::vector<int> all = LinuxThreads::process_cores();
  std::thread([&] {
    LinuxThreads::bind({});
    LinuxThreads::bind({all.back() + 4096});
    const fanout::detail::CoreMask mine(1024);
    REQUIRE(::sched_getaffinity(0, mine.bytes(), mine.get()) == 0);
    CHECK(CPU_COUNT_S(mine.bytes(), mine.get()) == static_cast<int>(all.size()));
  }).join();
}

TEST_CASE("where nothing is known of cores, there are none") { CHECK(PosixThreads::process_cores().empty()); }
