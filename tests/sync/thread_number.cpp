// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/thread_number.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

using fanout::detail::thread_number;

TEST_CASE("each thread has one number, which is not 0") {
  std::vector<std::uint32_t> numbers(8, 0);
  std::vector<std::thread> threads;
  for (std::uint32_t& number : numbers) {
    threads.emplace_back([&number] {
      number = thread_number();
      if (thread_number() != number) number = 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint32_t> different(numbers.begin(), numbers.end());
  different.insert(thread_number());
  CHECK(different.size() == 9);
  CHECK(different.count(0) == 0);
}
