// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/linux_threads.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include <fanout/worker/system_threads.hpp>

using fanout::detail::LinuxThreads;
using fanout::detail::PosixThreads;

namespace {

int number_of_own_cores() {
  cpu_set_t mine;
  return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : -1;
}

}  // namespace

TEST_CASE("a thread that runs can be bound to a core and be named") {
  const std::vector<int> all = LinuxThreads::process_cores();
  REQUIRE_FALSE(all.empty());
  std::thread([&] {
    LinuxThreads::bind(::pthread_self(), {all.back()});
    CHECK(::sched_getcpu() == all.back());
    CHECK(number_of_own_cores() == 1);
    LinuxThreads::name(::pthread_self(), "a name of too many letters");
    char name[16] = {};
    REQUIRE(::pthread_getname_np(::pthread_self(), name, sizeof name) == 0);
    CHECK(std::string(name) == "a name of too m");
  }).join();
  CHECK(LinuxThreads::process_cores() == all);
}

TEST_CASE("a thread that is bound to no core, or to one that the process does not have, runs where it did") {
  const std::vector<int> all = LinuxThreads::process_cores();
  std::thread([&] {
    LinuxThreads::bind(::pthread_self(), {});
    LinuxThreads::bind(::pthread_self(), {all.back() + 4096});
    CHECK(number_of_own_cores() == static_cast<int>(all.size()));
  }).join();
}

TEST_CASE("with glibc a thread is bound before it runs, if there are cores to bind it to") {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  CHECK_FALSE(LinuxThreads::bind(attributes, {}));
  const int last = LinuxThreads::process_cores().back();
  const bool bound = LinuxThreads::bind(attributes, {last});
  int cores = 0;
  pthread_t thread{};
  const auto count = [](void* to) -> void* {
    *static_cast<int*>(to) = number_of_own_cores();
    return nullptr;
  };
  REQUIRE(::pthread_create(&thread, &attributes, count, &cores) == 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
#if defined(__GLIBC__)
  CHECK(bound);
  CHECK(cores == 1);
#else
  CHECK_FALSE(bound);
#endif
}

TEST_CASE("where nothing is known of cores, there are none") { CHECK(PosixThreads::process_cores().empty()); }
