// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include <fanout/memory/output_buffer.hpp>

#include "memory/counting_memory.hpp"
#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::backend::Memory;
using fanout::detail::OutputBuffer;
using fanout::detail::OutputBuffers;
using fanout::detail::Storage;
using fanout_test::CountingMemory;

namespace {

static_assert(!std::is_destructible_v<OutputBuffer>, "its holders end it");
static_assert(!std::is_copy_constructible_v<OutputBuffer> && !std::is_copy_constructible_v<OutputBuffers>);

}  // namespace

TEST_CASE("an output buffer knows its rows and where each stands") {
  CountingMemory counting;
  auto* buffer = new OutputBuffer(counting.memory(), 4, 24);
  CHECK(buffer->rows() == 4);
  CHECK(buffer->row_bytes() == 24);
  CHECK(buffer->row(3) - buffer->row(0) == 72);
  CHECK(buffer->memory().space == CountingMemory::space);
  buffer->release();
}

TEST_CASE("the bytes of an output buffer can be moved out, and its rows go on showing them") {
  CountingMemory counting;
  auto* buffer = new OutputBuffer(counting.memory(), 4, 24);
  std::byte* const first = buffer->row(0);
  CHECK(buffer->owns_bytes());
  {
    const Storage bytes = buffer->take();
    CHECK(bytes.data() == first);
    CHECK(bytes.bytes() == 96);
    CHECK_FALSE(buffer->owns_bytes());
    CHECK(buffer->row(0) == first);
    CHECK(buffer->memory().space == CountingMemory::space);
    buffer->release();
    CHECK(counting.alive() == 1);
  }
  CHECK(counting.alive() == 0);
}

TEST_CASE("an output buffer without rows, or with rows of no bytes, needs no memory") {
  CountingMemory counting;
  auto* no_rows = new OutputBuffer(counting.memory(), 0, 24);
  auto* no_bytes = new OutputBuffer(counting.memory(), 4, 0);
  CHECK(counting.allocated == 0);
  CHECK(no_rows->rows() == 0);
  CHECK(no_bytes->row(3) == no_bytes->row(0));
  no_rows->release();
  no_bytes->release();
}

TEST_CASE("an output buffer whose bytes cannot be counted is refused") {
  constexpr std::size_t large = std::size_t{1} << 62;
  CHECK_THROWS_AS(new OutputBuffer(Memory{}, 4, large), fanout::ShapeMismatch);
}

TEST_CASE("the n-th output buffer is made once and stays the same") {
  CountingMemory counting;
  {
    OutputBuffers buffers(counting.memory());
    std::set<OutputBuffer*> seen;
    for (const std::size_t n : {100U, 0U, 7U, 8U, 9U, 15U, 16U, 99U, 1U}) {
      OutputBuffer& buffer = *buffers.get(n, n + 1, 8).buffer;
      CHECK(buffer.rows() == n + 1);
      CHECK(buffer.holders() == 1);
      CHECK(buffers.get(n, n + 1, 8).buffer == &buffer);
      CHECK(buffers.get(n, n + 1, 8).first == buffer.row(0));
      CHECK(buffers.get(n, n + 1, 8).row_bytes == 8);
      CHECK(seen.insert(&buffer).second);
    }
    CHECK(counting.allocated == 9);
  }
  CHECK(counting.alive() == 0);
}

TEST_CASE("a request with another row size returns the first buffer, whose size can be checked") {
  CountingMemory counting;
  OutputBuffers buffers(counting.memory());
  OutputBuffer& first = *buffers.get(2, 4, 8).buffer;
  OutputBuffer& again = *buffers.get(2, 4, 16).buffer;
  CHECK(&again == &first);
  CHECK(again.row_bytes() == 8);
}

TEST_CASE("the buffers of a call are allocated for all devices, if the memory knows how") {
  static int for_all = 0;
  static constexpr auto allocate = [](const fanout::MemorySpace& space, std::size_t bytes) {
    ++for_all;
    return fanout::backend::host_memory_operations.allocate(space, bytes);
  };
  auto operations = fanout::backend::host_memory_operations;
  operations.allocate_for_all = allocate;
  operations.fresh = &operations;
  fanout::detail::OutputBuffers buffers({fanout::host_memory, &operations});
  CHECK(buffers.get(0, 3, 8).buffer->rows() == 3);
  CHECK(buffers.get(0, 3, 8).row_bytes == 8);
  CHECK(for_all == 1);
  CHECK(buffers.get(1, 0, 8).buffer->row_bytes() == 8);
  CHECK(for_all == 1);
  CHECK_THROWS_AS(buffers.get(2, ~std::size_t{0} / 2, 8), fanout::ShapeMismatch);
}

TEST_CASE("a buffer that a tensor holds outlives the call's buffers") {
  CountingMemory counting;
  OutputBuffer* kept = nullptr;
  {
    OutputBuffers buffers(counting.memory());
    kept = buffers.get(20, 4, 8).buffer;
    kept->retain();
    buffers.get(21, 4, 8);
  }
  CHECK(counting.alive() == 1);
  CHECK(kept->holders() == 1);
  kept->retain();
  CHECK(kept->holders() == 2);
  kept->release();
  CHECK(counting.alive() == 1);
  kept->release();
  CHECK(counting.alive() == 0);
}

TEST_CASE("a buffer that could not be made can be asked for again") {
  CountingMemory counting;
  OutputBuffers buffers(counting.memory());
  counting.exhausted = true;
  for (const std::size_t n : {0U, 12U}) CHECK_THROWS_AS(buffers.get(n, 4, 8), fanout::OutOfMemory);
  counting.exhausted = false;
  for (const std::size_t n : {0U, 12U}) CHECK(buffers.get(n, 4, 8).buffer->rows() == 4);
}

TEST_CASE("in the child of a fork a buffer can be made that another thread of the parent was making") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  CountingMemory counting;
  OutputBuffers buffers(counting.memory());
  std::atomic<bool> making{false}, end{false};
  counting.before_allocating = [&] {
    making = true;
    while (!end) std::this_thread::yield();
  };
  std::thread maker([&] { buffers.get(1, 4, 8); });
  while (!making) std::this_thread::yield();
  CHECK(fanout_test::in_child([&] {
          counting.before_allocating = nullptr;
          return buffers.get(1, 4, 8).buffer->rows() == 4 ? 0 : 1;
        }) == 0);
  end = true;
  maker.join();
  CHECK(buffers.find(1) != nullptr);
  CHECK(buffers.find(0) == nullptr);
}

TEST_CASE("threads that ask at once get the same buffers, each made once") {
  constexpr std::size_t threads = 6;
  constexpr std::size_t count = 50;
  for (int round = 0; round < 20; ++round) {
    CountingMemory counting;
    {
      OutputBuffers buffers(counting.memory());
      std::vector<std::vector<OutputBuffer*>> seen(threads, std::vector<OutputBuffer*>(count));
      std::atomic<std::size_t> ready{0};
      std::vector<std::thread> workers;
      for (std::size_t t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
          ready.fetch_add(1);
          while (ready.load() < threads) std::this_thread::yield();
          for (std::size_t i = 0; i < count; ++i) {
            const std::size_t n = t % 2 == 0 ? i : count - 1 - i;
            seen[t][n] = buffers.get(n, n, 8).buffer;
          }
        });
      }
      for (std::thread& worker : workers) worker.join();
      for (std::size_t t = 1; t < threads; ++t) CHECK(seen[t] == seen[0]);
      CHECK(std::set<OutputBuffer*>(seen[0].begin(), seen[0].end()).size() == count);
      CHECK(counting.allocated == static_cast<int>(count) - 1);  // that of no rows needs none
    }
    CHECK(counting.alive() == 0);
  }
}
