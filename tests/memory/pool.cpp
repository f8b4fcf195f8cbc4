// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <fanout/base/cache_line.hpp>
#include <fanout/memory/pool.hpp>

#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::empty_host_cache;
using fanout::host_memory_cached;
using fanout::detail::keeps_blocks;
using fanout::detail::Pool;
using fanout::detail::pool;

namespace {

constexpr const char* nothing_kept = "nothing is kept for later under this sanitizer";

std::size_t page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_minflt);
}

struct Wide : fanout::detail::Pooled {
  explicit Wide(int n) : number(n) {}
  int number;
};
struct alignas(fanout::detail::cores_apart) Aligned : fanout::detail::Pooled {
  unsigned char bytes[128];
};
struct alignas(256) TooAligned : fanout::detail::Pooled {
  unsigned char bytes[256];
};

}  // namespace

TEST_CASE("a block that was dropped is the next one of its size, on any thread") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  empty_host_cache();
  for (const std::size_t bytes : {1U, 100U, 5000U, 100000U, 3000000U}) {
    void* const first = pool.take(bytes);
    pool.give(first, bytes);
    void* second = nullptr;
    std::thread([&] { second = pool.take(bytes); }).join();
    CHECK(second == first);
    void* const third = pool.take(bytes);
    CHECK(third != second);
    pool.give(third, bytes);
    std::thread([&] { pool.give(second, bytes); }).join();
    CHECK(host_memory_cached() >= 2 * bytes);
    empty_host_cache();
    CHECK(host_memory_cached() == 0);
  }
}

TEST_CASE("blocks are aligned, apart, and whole") {
  std::mt19937 random(7);
  std::map<unsigned char*, std::size_t> taken;
  for (int i = 0; i < 20000; ++i) {
    if (taken.size() > 60 || (!taken.empty() && random() % 2 == 0)) {
      auto at = taken.begin();
      std::advance(at, random() % taken.size());
      const auto [block, bytes] = *at;
      const auto mark = static_cast<unsigned char>(bytes);
      REQUIRE(block[0] == mark);
      REQUIRE(block[bytes / 2] == mark);
      REQUIRE(block[bytes - 1] == mark);
      pool.give(block, bytes);
      taken.erase(at);
    } else {
      const std::size_t bytes = 1 + random() % (std::size_t{1} << (random() % 22));
      auto* const block = static_cast<unsigned char*>(pool.take(bytes));
      REQUIRE(block != nullptr);
      REQUIRE(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
      block[0] = block[bytes / 2] = block[bytes - 1] = static_cast<unsigned char>(bytes);
      const auto [at, is_new] = taken.emplace(block, bytes);
      REQUIRE(is_new);
      if (at != taken.begin()) {
        const auto& [before, length] = *std::prev(at);
        REQUIRE(before + length <= block);
      }
      if (std::next(at) != taken.end()) REQUIRE(block + bytes <= std::next(at)->first);
    }
  }
  for (const auto& [block, bytes] : taken) pool.give(block, bytes);
}

TEST_CASE("threads that take and give at the same time never have one block twice") {
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  std::atomic<std::uintptr_t> handed{0};  // from one thread to another
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&torn, &handed, t] {
      std::mt19937 random(t);
      for (unsigned i = 0; i < 20000; ++i) {
        constexpr std::size_t sizes[] = {64, 500, 70000};
        const std::size_t bytes = sizes[random() % 3];
        auto* const block = static_cast<volatile unsigned*>(pool.take(bytes));
        const unsigned mark = i * 4 + t;
        block[0] = mark;
        block[15] = mark;
        if (random() % 16 == 0) std::this_thread::yield();
        if (block[0] != mark || block[15] != mark) ++torn;
        void* const mine = const_cast<unsigned*>(block);
        if (bytes != 64) {
          pool.give(mine, bytes);
        } else if (const std::uintptr_t other = handed.exchange(reinterpret_cast<std::uintptr_t>(mine))) {
          pool.give(reinterpret_cast<void*>(other), 64);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(torn == 0);
  pool.give(reinterpret_cast<void*>(handed.load()), 64);
}

TEST_CASE("reusing a cached block touches no new pages") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  constexpr std::size_t bytes = std::size_t{40} << 20U;
  const auto use = [] {
    void* const block = pool.take(bytes);
    std::memset(block, 1, bytes);
    pool.give(block, bytes);
  };
  use();
  const std::size_t before = page_faults();
  for (int i = 0; i < 3; ++i) use();
  CHECK(page_faults() - before < 20);
  empty_host_cache();
}

TEST_CASE("the pool caches at most twice the peak use, or 64 MiB") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  static constinit Pool own;  // in which nothing was in use before
  constexpr std::size_t limit = std::size_t{64} << 20U;
  for (std::size_t bytes = limit / 64; bytes <= limit / 4; bytes += limit / 128) {
    void* const one = own.take(bytes);
    void* const other = own.take(bytes);
    own.give(one, bytes);
    own.give(other, bytes);
    CHECK(own.kept() <= limit);
  }
  CHECK(own.kept() > limit / 4);
  // Of one size, sixteen, and more of those from 64 KiB to 16 MiB.
  std::vector<void*> many(40);
  for (void*& block : many) block = own.take(1000);
  for (void* block : many) own.give(block, 1000);
  own.empty();
  for (void*& block : many) block = own.take(1000);
  for (void* block : many) own.give(block, 1000);
  CHECK(own.kept() == 16U * 1024);
  own.empty();
  CHECK(own.kept() == 0);
}

TEST_CASE("a pool caches many blocks of one size from 64 KiB to 16 MiB") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  static constinit Pool own;
  for (const std::size_t bytes : {std::size_t{1} << 16U, std::size_t{1} << 20U, std::size_t{1} << 24U}) {
    const std::size_t count = bytes < (1U << 24U) ? 256 : 40;  // addresses of 640 MiB, which nobody touches
    std::vector<void*> taken(count);
    for (void*& block : taken) block = own.take(bytes);
    for (void* block : taken) own.give(block, bytes);
    CHECK(own.kept() == count * bytes);
    std::vector<void*> again(count);
    for (void*& block : again) block = own.take(bytes);
    CHECK(std::set<void*>(again.begin(), again.end()) == std::set<void*>(taken.begin(), taken.end()));
    for (void* block : again) own.give(block, bytes);
    own.empty();
    CHECK(own.kept() == 0);
  }
}

TEST_CASE("a pool drops all blocks of the largest size first, however many") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  static constinit Pool own;
  constexpr std::size_t kib = std::size_t{1} << 10U;
  const auto use = [](std::size_t count, std::size_t bytes) {
    std::vector<void*> taken(count);
    for (void*& block : taken) *static_cast<unsigned char*>(block = own.take(bytes)) = 1;
    for (void* block : taken) own.give(block, bytes);
  };
  use(20, 2048 * kib);  // 64 MiB may be held
  for (const std::size_t size : {1024U, 896U, 768U, 640U, 512U}) use(30, size * kib);
  CHECK(own.kept() <= 64 * 1024 * kib);
  CHECK(own.kept() > 62 * 1024 * kib);
  auto* const block = static_cast<unsigned char*>(own.take(2048 * kib));
  CHECK(*block == 0);  // a new one
  own.give(block, 2048 * kib);
  own.empty();
}

TEST_CASE("unused blocks of a size with many are returned to the system") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  static constinit Pool own;
  constexpr std::size_t bytes = std::size_t{1} << 18U;
  std::vector<void*> taken(100);
  for (void*& block : taken) block = own.take(bytes);
  for (void* block : taken) own.give(block, bytes);
  for (int i = 0; i < 1000; ++i) own.give(own.take(bytes), bytes);
  CHECK(own.kept() == bytes);
  own.empty();
}

TEST_CASE("a pool caches up to twice its peak use and drops the largest blocks first") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  static constinit Pool own;
  constexpr std::size_t mib = std::size_t{1} << 20U;
  void* const one = own.take(48 * mib);
  void* const other = own.take(48 * mib);  // 96 MiB in use, so that 192 MiB may be held
  own.give(one, 48 * mib);
  own.give(other, 48 * mib);
  for (const std::size_t bytes : {40 * mib, 56 * mib}) {
    const std::size_t before = own.kept();
    void* const block = own.take(bytes);
    CHECK(own.kept() == before);
    own.give(block, bytes);
  }
  CHECK(own.kept() == 192 * mib);
  void* const block = own.take(64 * mib);
  CHECK(own.kept() == (40 + 48) * mib);  // of 40, 48, 48 and 56
  own.give(block, 64 * mib);
  own.empty();
}

TEST_CASE("an unused large block is returned to the system, and a used one stays") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  static constinit Pool own;
  constexpr std::size_t unwanted = 5U << 20U;
  constexpr std::size_t wanted = 1U << 20U;
  own.give(own.take(unwanted), unwanted);
  void* used = nullptr;
  for (int i = 0; i < 1000; ++i) {
    used = own.take(wanted);
    own.give(used, wanted);
    if (i == 400) CHECK(own.kept() == wanted + unwanted);
  }
  CHECK(own.kept() == wanted);
  CHECK(own.take(wanted) == used);
  own.give(used, wanted);
  own.empty();
}

TEST_CASE("the child of a fork can use the cached blocks and release those it inherited") {
  void* const mine = pool.take(5000);
  pool.give(pool.take(3000000), 3000000);
  const std::size_t kept = host_memory_cached();
  const pid_t child = ::fork();
  if (child == 0) {
    fanout_test::child_ends_with([&] {
      if (host_memory_cached() != kept) return 1;
      void* const block = pool.take(3000000);
      std::memset(block, 1, 3000000);
      pool.give(block, 3000000);
      pool.give(mine, 5000);
      empty_host_cache();
      return host_memory_cached() == 0 ? 0 : 2;
    });
  }
  CHECK(fanout_test::exit_code_of(child) == 0);
  CHECK(host_memory_cached() == kept);
  pool.give(mine, 5000);
}

TEST_CASE("cached blocks are returned to the system before an allocation fails") {
  if (!keeps_blocks) return fanout_test::skip(nothing_kept);
  const pid_t child = ::fork();
  if (child == 0) {
    fanout_test::child_ends_with([] {
      empty_host_cache();
      constexpr std::size_t large = std::size_t{1} << 29U;
      pool.give(pool.take(large), large);
      if (host_memory_cached() != large) return 1;
      // There are no addresses for another one beside it.
      std::size_t pages = 0;
      if (std::FILE* const file = std::fopen("/proc/self/statm", "re")) {
        if (std::fscanf(file, "%zu", &pages) != 1) return 2;
        std::fclose(file);
      }
      rlimit addresses{};
      addresses.rlim_cur = addresses.rlim_max = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + large / 4;
      if (::setrlimit(RLIMIT_AS, &addresses) != 0) return 3;
      constexpr std::size_t other = large / 4 * 3;
      void* const block = pool.take(other);
      if (block == nullptr || host_memory_cached() != 0) return 4;
      try {
        fanout::detail::refuse_bytes(other);
      } catch (const fanout::OutOfMemory&) {
      }
      return pool.take(large) == nullptr ? 0 : 5;
    });
  }
  CHECK(fanout_test::exit_code_of(child) == 0);
}

TEST_CASE("objects of pooled classes come from the pool, whatever their alignment") {
  auto* const wide = new Wide(7);
  CHECK(wide->number == 7);
  delete wide;
  if (keeps_blocks) {
    auto* const again = new Wide(8);
    CHECK(again == wide);
    delete again;
  }
  for (int round = 0; round < 3; ++round) {
    auto* const aligned = new Aligned;
    CHECK(reinterpret_cast<std::uintptr_t>(aligned) % fanout::detail::cores_apart == 0);
    delete aligned;
    if (keeps_blocks) {
      auto* const again = new Aligned;
      CHECK(again == aligned);
      delete again;
    }
    auto* const more = new TooAligned;
    CHECK(reinterpret_cast<std::uintptr_t>(more) % 256 == 0);
    delete more;
  }
}
