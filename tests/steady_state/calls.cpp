// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// calls DEVICES FLOATS [KIND]: makes each kind of call a few times (or that one), the last ones inside of
// measured_call(), where callgrind counts; prints the kind of each of those. Bodies do nothing. Run by `callgrind`
// here.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <pthread.h>
#include <unistd.h>

#include "steady_state/kinds.hpp"
#include "support/affinity.hpp"

namespace {

const pthread_t caller = ::pthread_self();
fanout::detail::Atomic<unsigned> shards_of_others{0};
bool bodies_meet = false;

}  // namespace

extern "C" {

[[gnu::noinline]] void measured_call(void (*call)(const void*), const void* what) {
  call(what);
  asm volatile("" ::: "memory");  // it is no tail call
}

/// Waits, uncounted, until the other shard has run on its own thread. The caller's work then does not depend on which
/// thread is faster. The wait is limited, since the caller itself may run that shard.
[[gnu::noinline]] void wait_for_other_shard() {
  for (int i = 0; i < 100 && shards_of_others.load() == 0; ++i) ::usleep(1000);
  shards_of_others.store(0);
  ::usleep(3000);
  asm volatile("" ::: "memory");
}
}

namespace fanout_test {

void enter_body(std::size_t) {
  if (!bodies_meet) return;
  if (::pthread_equal(::pthread_self(), caller) != 0) {
    wait_for_other_shard();
  } else {
    shards_of_others.store(1);
  }
}

void fill(fanout::View<const float, 1>, fanout::View<float, 1>) {}

}  // namespace fanout_test

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const int devices = std::atoi(argv[1]);
  const std::size_t floats = std::strtoul(argv[2], nullptr, 10);
  const std::string_view only = argc == 4 ? argv[3] : "";
  bodies_meet = devices > 1;
  const auto set = fanout::host_devices({.count = devices, .wait = fanout::Spin{}});
  const auto visit = [&](const char* name, const auto& call) {
    if (!only.empty() && only != name) return;
    for (int i = 0; i < 4; ++i) call();
    // callgrind runs one thread at a time, on any core. On that of another device, the caller would move.
    fanout_test::narrow_to(set[0].worker().cores());
    for (int i = 0; i < 4; ++i) {
      measured_call([](const void* what) { (*static_cast<decltype(&call)>(what))(); }, &call);
      std::puts(name);
    }
  };
  fanout_test::each_kind(set, floats, visit);
  return 0;
}
