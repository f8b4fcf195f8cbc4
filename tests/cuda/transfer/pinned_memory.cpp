// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/transfer/pinned_memory.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/cuda.hpp>
#include <fanout/cuda/memory_info.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/pinned.hpp>
#include <fanout/data.hpp>

#include "cuda/gpus.hpp"
#include "cuda/transfer/pinned_in_use.hpp"

namespace cuda = fanout::cuda;

namespace {

fanout::Tensor<char, 1> pinned_of(std::size_t bytes) { return {cuda::pinned_memory(bytes), fanout::Extents<1>{bytes}}; }

/// Sample i is an array of the number i under a name, and i.
struct Numbered {
  std::size_t size() const { return 100; }
  std::pair<std::map<std::string, fanout::Tensor<float, 1>>, int> operator[](std::size_t i) const {
    return {{{"x", fanout::Tensor<float, 1>::full({1000}, static_cast<float>(i))}}, static_cast<int>(i)};
  }
};

}  // namespace

TEST_CASE("pinned memory that is kept is released when its copy is done, whatever comes later in the stream") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice device(0);
  fanout_test::Barrier barrier;
  fanout::Tensor<float, 1> there;
  {
    fanout::Tensor<float, 1> x(cuda::detail::kept_pinned_storage(4000), {1000});
    x[999] = 7;
    const auto entered = device.enter();
    there = fanout::Tensor<float, 1>::uninitialized(x.extents(), device.memory());
    fanout::backend::transfer(device.memory(), there.data(), fanout::host_memory, x.data(), x.storage().bytes());
    device.synchronize();
    fanout_test::call_in(cuda::detail::streams_of(cuda::detail::gpu_at(0), 0).copies(), barrier);
  }
  barrier.open();
  device.synchronize();
  CHECK(fanout::to_host(there)[999] == 7);
}

TEST_CASE("pinned memory of a destroyed tensor is used for a later one of nearly its size, until empty_cache") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  cuda::empty_cache();
  const int before = stand_in_alive("pinned memory");
  const void* first = nullptr;
  {
    const fanout::Tensor<char, 1> tensor = pinned_of(10'000);
    first = tensor.data();
    CHECK(tensor.space() == fanout::host_memory);
    const fanout::Tensor<char, 1> copy = tensor;  // in ordinary memory
    CHECK(stand_in_alive("pinned memory") == before + 1);
  }
  CHECK(stand_in_alive("pinned memory") == before + 1);
  {
    const fanout::Tensor<char, 1> larger = pinned_of(10'001);
    const fanout::Tensor<char, 1> much_smaller = pinned_of(4'999);
    CHECK(larger.data() != first);
    CHECK(much_smaller.data() != first);
    const fanout::Tensor<char, 1> smaller = pinned_of(5'000);
    CHECK(smaller.data() == first);
    CHECK(smaller.storage().bytes() == 5'000);
    CHECK(pinned_of(6'000).data() != first);  // while that lives
    CHECK(pinned_of(0).empty());
  }
  CHECK(stand_in_alive("pinned memory") == before + 4);
  const fanout::Tensor<char, 1> held = pinned_of(10'000);
  cuda::empty_cache();
  CHECK(stand_in_alive("pinned memory") == before + 1);
}

TEST_CASE("pinned memory is used again only after the GPUs that use it") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  CHECK(fanout_test::release_waits([] { return pinned_of(100); }));
  const cuda::Stream stream(0);
  const fanout::Tensor<char, 1> again = pinned_of(100);
  CHECK(cuda::detail::pinned_blocks().use(again.data(), 100, stream));
  cuda::empty_cache();
}

TEST_CASE("before pinned memory is OutOfMemory, what is kept is freed") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  cuda::empty_cache();
  const int before = stand_in_alive("pinned memory");
  static_cast<void>(pinned_of(1'000));
  stand_in_fail("cudaHostAlloc", 1, 1, cudaErrorMemoryAllocation);
  CHECK(pinned_of(100'000).size() == 100'000);
  CHECK(stand_in_alive("pinned memory") == before + 1);  // the new one
  cuda::empty_cache();
  stand_in_fail("cudaHostAlloc", 1, 2, cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(pinned_of(100), fanout::OutOfMemory);
  CHECK(stand_in_alive("pinned memory") == before);
}

TEST_CASE("rules 183 and 185: a loader stacks its batches in pinned memory") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  for (const int workers : {0, 2}) {
    const fanout::Loader loader{Numbered(), {.batch = 16, .workers = workers, .pin = cuda::pinned_memory}};
    int next = 0;
    for (auto&& [named, y] : loader.epoch(0)) {
      const fanout::Tensor<float, 2>& x = named.at("x");
      CHECK(cuda::detail::pinned_blocks().use(x.data(), x.storage().bytes(), stream));
      CHECK(cuda::detail::pinned_blocks().use(y.data(), y.storage().bytes(), stream));
      for (std::size_t i = 0; i < y.size(); ++i, ++next) {
        CHECK(y[i] == next);
        CHECK(x(i, 999) == static_cast<float>(next));
      }
      const fanout::Tensor<float, 2> there = fanout::to(x, fanout::CudaDevice(0));
      CHECK(fanout::to_host(there)(0, 0) == static_cast<float>(y[0]));
    }
    CHECK(next == 100);
  }
  cuda::empty_cache();
}

TEST_CASE("the batches of a loader take turns in the same pinned memory") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  cuda::empty_cache();
  const int before = stand_in_alive("pinned memory");
  const fanout::Loader loader{Numbered(), {.batch = 8, .pin = cuda::pinned_memory}};
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (auto&& batch : loader.epoch(epoch)) static_cast<void>(batch);
  }
  CHECK(stand_in_alive("pinned memory") <= before + 4);  // two arrays in each of two batches
  cuda::empty_cache();
  CHECK(stand_in_alive("pinned memory") == before);
}
