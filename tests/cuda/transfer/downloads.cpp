// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include <fanout/cuda/transfer/downloads.hpp>
#include <fanout/cuda/transfer/transfer.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
namespace detail = fanout::cuda::detail;
using detail::Staging;

namespace {

/// Bytes on a GPU, and the room on the host that they go to.
struct Parcel {
  Parcel(int gpu, int instance, std::size_t bytes)
      : streams(&detail::streams_of(detail::gpu_at(gpu), instance)), sent(bytes), back(bytes) {
    unsigned state = static_cast<unsigned>(bytes) * 2654435761U + static_cast<unsigned>(gpu);
    for (unsigned char& byte : sent) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<unsigned char>(state >> 24U);
    }
    if (bytes == 0) return;
    data = detail::allocate_in(streams->compute(), bytes);
    detail::upload(*streams, data, sent.data(), bytes);
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
  ~Parcel() {
    if (data == nullptr) return;
    detail::release_in(streams->compute(), data, sent.size());
    streams->synchronize();
  }
  detail::Download download() { return {streams, back.data(), data, back.size()}; }

  detail::DeviceStreams* streams;
  std::vector<unsigned char> sent;
  std::vector<unsigned char> back;
  void* data = nullptr;
};

}  // namespace

TEST_CASE("arrays of several GPUs and devices arrive whole, whatever their sizes") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  constexpr std::size_t chunk = Staging::chunk_bytes;
  const int last = detail::count_gpus().count - 1;
  Parcel parcels[] = {{0, 0, 1},     {last, 0, 3 * chunk + 5}, {0, 1, 0},     {0, 0, chunk}, {last, 1, chunk + 1},
                      {0, 0, 77777}, {last, 0, 6 * chunk},     {0, 0, chunk}, {last, 0, 3}};
  std::vector<detail::Download> copies;
  for (Parcel& parcel : parcels) copies.push_back(parcel.download());
  detail::Downloads(copies.data(), copies.size()).make();
  for (const Parcel& parcel : parcels) CHECK(parcel.back == parcel.sent);
  detail::Downloads(nullptr, 0).make();
}

TEST_CASE("threads that download from all GPUs at once do not wait for each other's chunks forever") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const int gpus = detail::count_gpus().count;
  fanout::detail::Atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&wrong, gpus, t] {
      Parcel one(t % gpus, 0, 2 * Staging::chunk_bytes + 11);
      Parcel two((t + 1) % gpus, 0, 2 * Staging::chunk_bytes);
      Parcel three((t + 2) % gpus, 0, 500);
      for (int i = 0; i < 3; ++i) {
        detail::Download copies[] = {one.download(), two.download(), three.download()};
        detail::Downloads(copies, 3).make();
        for (Parcel* parcel : {&one, &two, &three}) {
          wrong.fetch_add(parcel->back == parcel->sent ? 0 : 1);
          std::memset(parcel->back.data(), 0, parcel->back.size());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("GPUs copy to the host at the same time") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  Parcel one(0, 0, 1000), two(1, 0, 1000);
  detail::Download copies[] = {one.download(), two.download()};
  one.streams->synchronize();
  two.streams->synchronize();
  stand_in_forget_counts();
  stand_in_set_copy_cost(50'000);
  detail::Downloads(copies, 2).make();
  stand_in_set_copy_cost(0);
  CHECK(stand_in_most_copies_at_once() == 2);
}
