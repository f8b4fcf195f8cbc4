// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/cuda/runtime/staging.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
using cuda::detail::Staging;

namespace {

/// On the first GPU. It is never destroyed, as those of devices are not.
Staging& made_for_good() {
  static auto& all = *new std::vector<Staging*>;
  all.push_back(new Staging(cuda::detail::gpu_at(0)));
  return *all.back();
}

}  // namespace

TEST_CASE("small pieces share a chunk until the GPU has read them, and never overlap") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  Staging& staging = made_for_good();
  const cuda::Stream stream(0);
  fanout_test::Barrier barrier;
  fanout_test::call_in(stream, barrier);
  std::vector<std::byte*> rooms;
  for (int i = 0; i < 3; ++i) {
    Staging::Room room = staging.take(stream, 1000);
    REQUIRE(room);
    rooms.push_back(room.data());
    room.done();
  }
  CHECK(rooms[1] == rooms[0] + 1024);
  CHECK(rooms[2] == rooms[1] + 1024);
  {
    // What all chunk_bytes are asked for does not fit behind these.
    Staging::Room room = staging.take(stream, Staging::chunk_bytes);
    CHECK((room.data() < rooms[0] || room.data() >= rooms[0] + Staging::chunk_bytes));
    room.done();
  }
  {
    // Nor behind work of another stream, for which no event stands.
    const cuda::Stream other(0);
    Staging::Room room = staging.take(other, 1000);
    CHECK((room.data() < rooms[0] || room.data() >= rooms[0] + Staging::chunk_bytes));
    room.done();
    other.synchronize();
  }
  barrier.open();
  stream.synchronize();
  Staging::Room again = staging.take(stream, Staging::chunk_bytes);
  CHECK(again.data() == rooms[0]);
  again.done();
}

TEST_CASE("at most most_chunks chunks are made, and a request beyond that waits for one") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  Staging& staging = made_for_good();
  const cuda::Stream stream(0);
  const int before = stand_in_alive("pinned memory");
  fanout_test::Barrier barrier;
  fanout_test::call_in(stream, barrier);
  for (std::uint32_t i = 0; i < Staging::most_chunks; ++i) staging.take(stream, Staging::chunk_bytes).done();
  CHECK(stand_in_alive("pinned memory") == before + static_cast<int>(Staging::most_chunks));
  CHECK_FALSE(staging.try_take(stream, 1));
  std::thread opener([&barrier] { barrier.open(); });
  for (int i = 0; i < 10; ++i) staging.take(stream, Staging::chunk_bytes).done();
  opener.join();
  CHECK(stand_in_alive("pinned memory") == before + static_cast<int>(Staging::most_chunks));
  stream.synchronize();
}

TEST_CASE("a part that is assigned to leaves its chunk at once") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  Staging& staging = made_for_good();
  const cuda::Stream stream(0);
  std::vector<Staging::Room> others;
  for (std::uint32_t i = 1; i < Staging::most_chunks; ++i) others.push_back(staging.take(stream, 1));
  Staging::Room room = staging.take(stream, 1);
  room.done();
  CHECK_FALSE(staging.try_take(stream, 1));
  room = Staging::Room();
  CHECK_FALSE(room);
  stream.synchronize();

  Staging::Room last = staging.try_take(stream, 1);
  REQUIRE(last);
  std::byte* const data = last.data();
  CHECK_FALSE(staging.try_take(stream, 1));
  room = std::move(last);
  CHECK(room.data() == data);
  CHECK_FALSE(last);  // NOLINT(bugprone-use-after-move): a moved Room is empty
  CHECK_FALSE(staging.try_take(stream, 1));
  room.done();
  for (Staging::Room& other : others) other.done();
}

TEST_CASE("a chunk whose user failed is taken again when the work until then is done, whatever comes later") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  Staging& staging = made_for_good();
  const cuda::Stream stream(0);
  std::atomic<bool> done{false};
  auto work = [&done] { done = true; };
  for (std::uint32_t i = 0; i < Staging::most_chunks; ++i) {
    const Staging::Room room = staging.take(stream, Staging::chunk_bytes);
    fanout_test::call_in(stream, work);
    // and never says done()
  }
  fanout_test::Barrier barrier;
  fanout_test::call_in(stream, barrier);
  Staging::Room room = staging.take(stream, Staging::chunk_bytes);
  CHECK(done);
  barrier.open();
  room.done();
  stream.synchronize();
}

TEST_CASE("a chunk goes from a stream of one GPU to that of another") {
  if (!fanout_test::has_gpus(2)) return;
  const fanout_test::Watched watched;
  Staging& staging = made_for_good();
  const cuda::Stream first(0);
  const cuda::Stream second(1);
  for (int i = 0; i < 10; ++i) {
    staging.take(first, 1).done();
    staging.take(second, 1).done();
  }
  first.synchronize();
  second.synchronize();
}

TEST_CASE("failing to allocate staging memory is OutOfMemory, and the next use tries again") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  Staging& staging = made_for_good();
  const cuda::Stream stream(0);
  stand_in_fail("cudaHostAlloc", 1, 1, cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(staging.take(stream, 1), fanout::OutOfMemory);
  Staging::Room room = staging.take(stream, 1);
  CHECK(room.data() != nullptr);
  room.done();
  stream.synchronize();
}
