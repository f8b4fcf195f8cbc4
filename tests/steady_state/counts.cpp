// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In the steady state a call allocates nothing, touches no fresh page, copies nothing, and takes no lock. Counted, not
// timed: what is counted is the same on a busy machine.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <sys/resource.h>

#include <fanout/stages.hpp>

#include "steady_state/kinds.hpp"
#include "support/skip.hpp"

#include "steady_state/interposed.hpp"  // last: headers declare again what this defines

namespace {

/// What is counted, each with its name.
struct Counts {
  static constexpr std::size_t kinds = 7;
  static constexpr std::array<std::string_view, kinds> names{
      "allocations", "calls of operator new", "mappings", "bytes copied", "locks", "system calls", "page faults"};
  enum Kind : std::size_t { allocations, news, mappings, copied, locks, system_calls, page_faults };

  std::array<long, kinds> of{};

  static Counts now() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return {{interposed.allocations, interposed.news, interposed.mappings, interposed.copied, interposed.locks,
             interposed.system_calls, usage.ru_minflt + usage.ru_majflt}};
  }
  friend Counts operator-(Counts a, const Counts& b) {
    for (std::size_t kind = 0; kind < kinds; ++kind) a.of[kind] -= b.of[kind];
    return a;
  }
  long operator[](Kind kind) const { return of[kind]; }
};

/// Shards that wait for each other in their bodies, as far as there are cores for all: so each runs on its own thread.
std::atomic<std::size_t> shards_in_bodies = 0;
bool bodies_meet = false;

}  // namespace

namespace fanout_test {

void enter_body(std::size_t shards) {
  if (!bodies_meet) return;
  const std::size_t ticket = shards_in_bodies++;
  const std::size_t all = (ticket / shards + 1) * shards;
  // Not for ever: a caller may run all shards by itself, one after the other.
  for (int i = 0; i < 20'000 && shards_in_bodies < all; ++i) fanout::detail::pause();
}

void fill(fanout::View<const float, 1> x, fanout::View<float, 1> y) {
  for (std::size_t i = 0; i < y.size(); i += 1024) y[i] = x[i];  // each page once
}

}  // namespace fanout_test

namespace {

/// What so many calls may do: nothing, but for copies of what describes arrays and shards. Those are far from a shard's
/// rows of the smallest array. System calls are looked at apart.
Counts allowed(long calls) {
  Counts most;
  most.of[Counts::copied] = 1024 * calls;
  most.of[Counts::system_calls] = LONG_MAX;
  return most;
}

/// What so many calls did beyond that; empty if nothing. The least of several rounds counts: what each call does shows
/// in all of them, and not what the machine does now and then, as moving pages.
template <class Call>
std::string excess(const Call& call, long calls, long of_models = 1) {
  const Counts most = allowed(calls * of_models);
  for (int i = 0; i < 20; ++i) call();
  Counts least;
  std::string text;
  for (int round = 0; round < 5; ++round) {
    const Counts before = Counts::now();
    for (long i = 0; i < calls; ++i) call();
    const Counts done = Counts::now() - before;
    text.clear();
    for (std::size_t kind = 0; kind < Counts::kinds; ++kind) {
      least.of[kind] = round == 0 ? done.of[kind] : std::min(least.of[kind], done.of[kind]);
      if (least.of[kind] <= most.of[kind]) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(least.of[kind]) + ' ' + std::string(Counts::names[kind]);
    }
    if (text.empty()) break;
  }
  return text;
}

void check(int devices, std::size_t rows) {
  bodies_meet = devices > 1 && devices <= fanout::host_device_count();
  const long calls = rows > 1'000'000 ? 10 : 50;
  fanout_test::each_kind(fanout::host_devices(devices), rows, [&](const std::string& name, const auto& call) {
    const std::string found = excess(call, calls);
    CHECK_MESSAGE(found.empty(), name, " on ", devices, " devices, ", rows, " floats: ", calls,
                  " calls in the steady state should do nothing of this, and did: ", found);
  });
}

/// Of ten calls in a row, the fewest: a thread may be stopped where another one waits for it so long that it sleeps.
template <class Devices>
void check_system_calls(const Devices& devices) {
  fanout_test::each_kind(devices, 10'000, [&](const std::string& name, const auto& call) {
    long least = LONG_MAX;
    for (int attempt = 0; attempt < 100 && least > 0; ++attempt) {
      const Counts before = Counts::now();
      for (int i = 0; i < 10; ++i) call();
      least = std::min(least, (Counts::now() - before)[Counts::system_calls]);
    }
    CHECK_MESSAGE(least == 0, name, " on ", devices.size(), " devices: ten calls made ", least, " system calls");
  });
}

void check_all(int devices) {
  for (const std::size_t rows : {10'000UL, 1'000'000UL, 10'000'000UL}) check(devices, rows);
}

}  // namespace

TEST_CASE("allocations, copies, locks and system calls are counted") {
  // At least: doctest does something, too.
  volatile std::size_t page = 4096;
  Counts before = Counts::now();
  const auto since = [&](Counts::Kind kind) {
    const Counts now = Counts::now();
    return (now - std::exchange(before, now))[kind];
  };
  void* volatile memory = ::operator new(100);
  ::operator delete(memory);
  CHECK(since(Counts::news) >= 1);
  memory = std::malloc(100);
  memory = std::realloc(memory, 200);
  std::free(memory);
  memory = std::aligned_alloc(64, 128);
  std::free(memory);
  memory = std::calloc(1, 100);
  std::free(memory);
  CHECK(since(Counts::allocations) >= 4);

  auto* const pages =
      static_cast<char*>(::mmap(nullptr, 10 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(since(Counts::mappings) >= 1);
  ::madvise(pages, 10 * page, MADV_NOHUGEPAGE);
  CHECK(since(Counts::mappings) >= 1);
  for (std::size_t i = 0; i < 10; ++i) pages[page * i] = 1;
  CHECK(since(Counts::page_faults) >= 10);
  std::memcpy(pages, pages + page, page);
  std::memmove(pages, pages + 100, page);
  std::memset(pages, 1, page);
  std::copy(pages, pages + page, pages + 2 * page);
  CHECK(since(Counts::copied) >= 4 * 4096);
  ::munmap(pages, 10 * page);

  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  ::pthread_mutex_lock(&mutex);
  ::pthread_mutex_unlock(&mutex);
  CHECK(since(Counts::locks) >= 1);
  const fanout::detail::Atomic<std::uint32_t> word{0};
  fanout::detail::park(word, 1);
  CHECK(since(Counts::system_calls) >= 1);
}

TEST_CASE("one host device: nothing is allocated, copied or locked in the steady state") { check_all(1); }

TEST_CASE("two host devices: nothing is allocated, copied or locked in the steady state") { check_all(2); }

TEST_CASE("four host devices: nothing is allocated, copied or locked in the steady state") { check_all(4); }

TEST_CASE("one host device: calls make no system calls") { check_system_calls(fanout::host_devices(1)); }

TEST_CASE("two host devices that spin: calls make no system calls") {
  if (fanout::host_device_count() < 2) {
    fanout_test::skip("needs two cores");
    return;
  }
  bodies_meet = true;
  check_system_calls(fanout::host_devices({.count = 2, .wait = fanout::Spin{}}));
}

TEST_CASE("a pipeline of two stages: nothing is allocated, copied or locked in the steady state") {
  bodies_meet = false;
  const auto devices = fanout::host_devices(2);
  const auto on = [&](std::size_t i) { return fanout::DeviceSet<fanout::HostDevice>({devices[i]}); };
  const auto layer = [](fanout::Context auto& ctx, fanout::View<const float, 1> x) {
    auto y = fanout::output<float>(ctx);
    fanout_test::fill(x, y);
    return y;
  };
  const fanout::Pipeline net{fanout::stage(layer, on(0)), fanout::stage(layer, on(1))};
  const fanout::Tensor<float, 1> x(1'000'000);
  // A call has 8 micro-batches, so it makes 16 calls of models.
  const std::string found = excess([&] { static_cast<void>(net(x)); }, 50, 16);
  CHECK_MESSAGE(found.empty(), "50 calls in the steady state should do nothing of this, and did: ", found);
}
