// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include <fanout/cuda/transfer/peer_access.hpp>
#include <fanout/cuda/transfer/pinned.hpp>
#include <fanout/cuda/transfer/transfer.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
namespace detail = fanout::cuda::detail;
using detail::Staging;

namespace {

detail::DeviceStreams& streams_at(int index, int instance = 0) {
  return detail::streams_of(detail::gpu_at(index), instance);
}

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  unsigned state = seed * 2654435761U + 1;
  for (unsigned char& byte : data) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<unsigned char>(state >> 24U);
  }
  return data;
}

/// Memory of a device's GPU, released in order with its work.
struct OnGpu {
  OnGpu(detail::DeviceStreams& of, std::size_t size)
      : streams(of), bytes(size), data(detail::allocate_in(of.compute(), size)) {}
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() { detail::release_in(streams.compute(), data, bytes); }
  detail::DeviceStreams& streams;
  std::size_t bytes;
  void* data;
};

}  // namespace

TEST_CASE("bytes copied to a GPU and back are the same, whatever their number") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = streams_at(0);
  constexpr std::size_t chunk = Staging::chunk_bytes;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, chunk - 1, chunk, chunk + 1, 6 * chunk + 12345}) {
    std::vector<unsigned char> sent = pattern(bytes, 1);
    const std::vector<unsigned char> expected = sent;
    const OnGpu memory(streams, bytes);
    detail::upload(streams, memory.data, sent.data(), bytes);
    std::memset(sent.data(), 0, bytes);  // it has been read
    std::vector<unsigned char> back(bytes);
    detail::download(streams, back.data(), memory.data, bytes);
    CHECK(back == expected);
  }
  streams.synchronize();
}

TEST_CASE("all transfers to and from a GPU go through pinned memory") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = streams_at(0);
  stand_in_forget_counts();
  const std::vector<unsigned char> sent = pattern(100000, 2);
  std::vector<unsigned char> back(sent.size());
  const OnGpu memory(streams, sent.size());
  detail::upload(streams, memory.data, sent.data(), sent.size());
  detail::download(streams, back.data(), memory.data, sent.size());
  CHECK(back == sent);
  CHECK(stand_in_copies("h2d pageable") == 0);
  CHECK(stand_in_copies("d2h pageable") == 0);
  CHECK(stand_in_copied_bytes("h2d pinned") == sent.size());
  CHECK(stand_in_copied_bytes("d2h pinned") == sent.size());
}

TEST_CASE("rule 182: pinned tensors are copied in one piece, without waiting") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = streams_at(0);
  const std::size_t bytes = 3 * Staging::chunk_bytes;
  const std::vector<unsigned char> sent = pattern(bytes, 3);
  fanout::Tensor<unsigned char, 1> pinned = cuda::pinned<unsigned char>(bytes);
  std::memcpy(pinned.data(), sent.data(), bytes);
  fanout::Tensor<unsigned char, 1> back = cuda::pinned<unsigned char>(bytes);
  stand_in_forget_counts();
  const OnGpu memory(streams, bytes);
  detail::upload(streams, memory.data, pinned.data(), bytes);
  pinned = {};  // waits until the GPU has read it
  detail::download(streams, back.data(), memory.data, bytes);
  CHECK(stand_in_copies("h2d pinned") == 1);
  CHECK(stand_in_copies("d2h pinned") == 1);
  CHECK(std::memcmp(back.data(), sent.data(), bytes) == 0);
}

TEST_CASE("an upload is in order with the device's work, before and after it") {
  if (!fanout_test::has_stand_in(1)) return;  // a GPU's memory is read on the host
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = streams_at(0);
  const OnGpu memory(streams, sizeof(int));
  auto* const value = static_cast<int*>(memory.data);
  fanout_test::Barrier barrier;
  int before = -1;
  int after = -1;
  auto write = [value] { *value = 1; };
  auto read_before = [value, &before] { before = *value; };
  auto read_after = [value, &after] { after = *value; };
  fanout_test::call_in(streams.compute(), write);
  fanout_test::call_in(streams.compute(), barrier);
  fanout_test::call_in(streams.compute(), read_before);
  const int sent = 2;
  detail::upload(streams, value, &sent, sizeof sent);
  fanout_test::call_in(streams.compute(), read_after);
  CHECK(before == -1);
  barrier.open();
  streams.synchronize();
  CHECK(before == 1);
  CHECK(after == 2);
}

TEST_CASE("rule 11: new memory is filled while the device still computes, and its work then waits for it") {
  if (!fanout_test::has_stand_in(1)) return;  // a GPU's memory is read on the host
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = streams_at(0);
  static_cast<void>(streams.compute());
  fanout_test::Barrier barrier;
  fanout_test::call_in(streams.compute(), barrier);
  fanout::backend::Completion of_earlier_call = streams.completion();
  const std::vector<unsigned char> sent = pattern(6 * Staging::chunk_bytes, 4);
  void* const data = detail::upload_new(streams, sent.data(), sent.size());
  streams.copies().synchronize();  // though the work before it has not ended
  CHECK_FALSE(streams.compute().is_idle());
  CHECK(std::memcmp(data, sent.data(), sent.size()) == 0);
  barrier.open();
  streams.compute().synchronize();

  // The other way round: the copies are late, and the work waits for them.
  fanout_test::Barrier late;
  fanout_test::call_in(streams.copies(), late);
  const int value = 5;
  void* const there = detail::upload_new(streams, &value, sizeof value);
  int seen = 0;
  auto look = [there, &seen] { seen = *static_cast<int*>(there); };
  fanout_test::call_in(streams.compute(), look);
  late.open();
  streams.compute().synchronize();
  CHECK(seen == 5);
  detail::release_in(streams.compute(), data, sent.size());
  detail::release_in(streams.compute(), there, sizeof value);
  streams.synchronize();
}

TEST_CASE("a download is in order with the device's work") {
  if (!fanout_test::has_stand_in(1)) return;  // a GPU's memory is written on the host
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = streams_at(0);
  const OnGpu memory(streams, sizeof(int));
  auto write = [&memory] { *static_cast<int*>(memory.data) = 7; };
  fanout_test::Barrier barrier;
  fanout_test::call_in(streams.compute(), barrier);
  fanout_test::call_in(streams.compute(), write);
  std::thread opener([&barrier] { barrier.open(); });
  int back = 0;
  detail::download(streams, &back, memory.data, sizeof back);
  CHECK(back == 7);
  opener.join();
}

TEST_CASE("a GPU does not change what another one still copies from it") {
  if (!fanout_test::has_stand_in(2)) return;  // a GPU's memory is written on the host
  const fanout_test::Watched watched;
  detail::DeviceStreams& first = streams_at(0);
  detail::DeviceStreams& second = streams_at(1);
  const OnGpu from(first, sizeof(int));
  const OnGpu to(second, sizeof(int));
  auto write = [&from] { *static_cast<int*>(from.data) = 1; };
  auto change = [&from] { *static_cast<int*>(from.data) = 2; };
  const bool direct = fanout::cuda::peer_trusted(0, 1);
  fanout_test::Barrier barrier;
  fanout_test::call_in(first.compute(), write);
  fanout_test::call_in(second.compute(), barrier);
  detail::exchange(second, to.data, first, from.data, sizeof(int));
  fanout_test::call_in(first.compute(), change);
  if (direct) CHECK_FALSE(first.compute().is_idle());
  barrier.open();
  int back = 0;
  detail::download(second, &back, to.data, sizeof back);
  CHECK(back == 1);
  first.synchronize();
}

TEST_CASE("memory goes from GPU to GPU") {
  if (!fanout_test::has_gpus(2)) return;
  const fanout_test::Watched watched;
  detail::DeviceStreams& first = streams_at(0);
  detail::DeviceStreams& second = streams_at(1);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, 6 * Staging::chunk_bytes + 77}) {
    const std::vector<unsigned char> sent = pattern(bytes, 5);
    const OnGpu from(first, bytes);
    const OnGpu to(second, bytes);
    // As the GPUs can, and by the host, which does for all.
    for (const auto fetch : {&detail::fetch, &detail::fetch_by_host}) {
      detail::upload(first, from.data, sent.data(), bytes);
      detail::exchange(second, to.data, first, from.data, bytes, *fetch);
      // The source may be changed at once, in order with its GPU's work.
      const std::vector<unsigned char> other = pattern(bytes, 6);
      detail::upload(first, from.data, other.data(), bytes);
      std::vector<unsigned char> back(bytes);
      detail::download(second, back.data(), to.data, bytes);
      CHECK(back == sent);
      detail::download(first, back.data(), from.data, bytes);
      CHECK(back == other);
    }
  }
  first.synchronize();
  second.synchronize();
}

TEST_CASE("threads that use one device at once each get their own bytes") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = streams_at(0);
  fanout::detail::Atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&streams, &wrong, t] {
      for (unsigned i = 0; i < 20; ++i) {
        const std::size_t bytes = i % 5 == 0 ? 2 * Staging::chunk_bytes + t : 3000 + t;
        const std::vector<unsigned char> sent = pattern(bytes, 100 * t + i);
        std::vector<unsigned char> back(bytes);
        const OnGpu memory(streams, bytes);
        detail::upload(streams, memory.data, sent.data(), bytes);
        detail::download(streams, back.data(), memory.data, bytes);
        wrong.fetch_add(back == sent ? 0 : 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
  streams.synchronize();
}

TEST_CASE("threads that copy between two GPUs in both directions do not deadlock") {
  if (!fanout_test::has_gpus(2)) return;
  const fanout_test::Watched watched;
  const std::size_t bytes = 6 * Staging::chunk_bytes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      detail::DeviceStreams& from = streams_at(t % 2);
      detail::DeviceStreams& to = streams_at(1 - t % 2);
      const OnGpu source(from, bytes);
      const OnGpu target(to, bytes);
      const std::vector<unsigned char> sent = pattern(bytes, 7);
      std::vector<unsigned char> back(bytes);
      for (int i = 0; i < 3; ++i) {
        detail::upload(from, source.data, sent.data(), bytes);
        detail::exchange(to, target.data, from, source.data, bytes);
        detail::exchange(from, source.data, to, target.data, bytes, detail::fetch_by_host);
        detail::download(from, back.data(), source.data, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  streams_at(0).synchronize();
  streams_at(1).synchronize();
}
