// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/group/fair_mutex.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>

using fanout::detail::FairMutex;

TEST_CASE("a fair mutex is held by one thread, and others get it from one that locks it again and again") {
  FairMutex mutex;
  int guarded = 0;
  std::atomic<int> waiting{2};
  const auto wait_once = [&] {
    const std::lock_guard<FairMutex> alone(mutex);
    ++guarded;
    --waiting;
  };
  std::thread first(wait_once), second(wait_once);
  while (waiting != 0) {
    const std::lock_guard<FairMutex> alone(mutex);
    ++guarded;
    std::this_thread::yield();  // in which the others find it locked
  }
  first.join();
  second.join();
  CHECK(guarded >= 2);

  std::unique_lock<FairMutex> held(mutex, std::try_to_lock);
  CHECK(held.owns_lock());
  std::thread([&] { CHECK_FALSE(mutex.try_lock()); }).join();
  held.unlock();
  CHECK(mutex.try_lock());
  mutex.unlock();
}
