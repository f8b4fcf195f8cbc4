// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <thread>
#include <utility>
#include <vector>

#include <fanout/cuda/transfer/pinned.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;

TEST_CASE("rule 184: a pinned tensor is a tensor in host memory, also without CUDA") {
  const fanout_test::Watched watched;
  fanout::Tensor<float, 2> tensor = cuda::pinned<float>(3, 4);
  CHECK(tensor.space() == fanout::host_memory);
  CHECK(tensor.extents() == fanout::Extents<2>{3, 4});
  for (const float value : tensor.values()) CHECK(value == 0.0F);
  tensor(1, 2) = 5;

  const fanout::Tensor<float, 2> copy = tensor;
  CHECK(copy(1, 2) == 5.0F);
  const fanout::Tensor<float, 2> moved = std::move(tensor);
  CHECK(moved(1, 2) == 5.0F);
  CHECK(cuda::pinned<int>(0).empty());
  CHECK(cuda::pinned<int>(0, 5).extent(1) == 5);
  CHECK_THROWS_AS(cuda::pinned<int>(-1), fanout::ShapeMismatch);
}

TEST_CASE("pin() copies its argument") {
  const fanout_test::Watched watched;
  fanout::Tensor<int, 1> tensor(5);
  for (int i = 0; i < 5; ++i) tensor(i) = i;
  const fanout::Tensor<int, 1> copy = cuda::pin(tensor);
  const fanout::Tensor<int, 1> part = cuda::pin(tensor.rows({1, 3}));
  const fanout::Tensor<int, 1> constant = cuda::pin(std::as_const(tensor).view());
  tensor(1) = 100;
  CHECK(copy(1) == 1);
  CHECK(part.extents() == fanout::Extents<1>{2});
  CHECK(part(0) == 1);
  CHECK(constant(4) == 4);
  const fanout::MemorySpace elsewhere{.owner = {.kind = "cuda"}};
  CHECK_THROWS_AS(cuda::pin(fanout::View<const int, 1>(tensor.data(), {5}, elsewhere)), fanout::DeviceMismatch);
}

TEST_CASE("only requested tensors are pinned, and their memory is released") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const int before = stand_in_alive("pinned memory");
  {
    const fanout::Tensor<int, 1> pinned = cuda::pinned<int>(1000);
    CHECK(stand_in_alive("pinned memory") == before + 1);
    const fanout::Tensor<int, 1> copy = pinned;
    CHECK(stand_in_alive("pinned memory") == before + 1);
    CHECK(cuda::pinned<int>(0).empty());
  }
  CHECK(stand_in_alive("pinned memory") == before);
}

TEST_CASE("parts of pinned tensors are known as pinned, and nothing else is") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  auto& blocks = cuda::detail::pinned_blocks();
  std::vector<fanout::Tensor<char, 1>> tensors;
  for (int i = 0; i < 30; ++i) tensors.push_back(cuda::pinned<char>(5000));  // the array grows to 8, 24 and 56
  tensors.erase(tensors.begin() + 4);
  for (const fanout::Tensor<char, 1>& tensor : tensors) {
    CHECK(blocks.use(tensor.data(), 5000, stream));
    CHECK(blocks.use(tensor.data() + 4999, 1, stream));
    CHECK(blocks.use(tensor.data() + 100, 200, stream));
    CHECK_FALSE(blocks.use(tensor.data() + 1, 5000, stream));
    CHECK_FALSE(blocks.use(tensor.data(), SIZE_MAX, stream));
  }
  const fanout::Tensor<char, 1> ordinary(5000);
  CHECK_FALSE(blocks.use(ordinary.data(), 5000, stream));
  tensors.clear();
}

TEST_CASE("a pinned tensor may be destroyed after the runtime and without a context") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  fanout::Tensor<int, 1> tensor = cuda::pinned<int>(100);
  std::thread([moved = std::move(tensor)]() mutable { moved = {}; }).join();
  tensor = cuda::pinned<int>(100);
  stand_in_set_unloading(1);
  CHECK_NOTHROW(tensor = {});
  stand_in_set_unloading(0);
}

TEST_CASE("pinned memory of other libraries is adopted and copied like that of pinned()") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  float* data = nullptr;
  {
    const cuda::DeviceGuard entered(0);
    REQUIRE(::cudaHostAlloc(reinterpret_cast<void**>(&data), 12 * sizeof(float), cudaHostAllocPortable) == cudaSuccess);
  }
  int freed = 0;
  bool done = false;
  const auto free = [&freed, &done](float* pointer) {
    ++freed;
    CHECK(done);
    const cuda::DeviceGuard entered(0);
    CHECK(::cudaFreeHost(pointer) == cudaSuccess);
  };
  fanout_test::Barrier barrier;
  auto work = [&done] { done = true; };
  std::thread opener;
  {
    const fanout::Tensor<float, 2> tensor = cuda::adopt_pinned(data, free, 3, 4);
    CHECK(tensor.data() == data);
    CHECK(tensor.extents() == fanout::Extents<2>{3, 4});
    CHECK(cuda::detail::pinned_blocks().use(tensor.data(), 48, stream));
    fanout_test::call_in(stream, barrier);
    fanout_test::call_in(stream, work);
    opener = std::thread([&barrier] { barrier.open(); });
    CHECK(freed == 0);
  }
  CHECK(freed == 1);
  opener.join();
}

TEST_CASE("an empty pinned tensor may begin at or inside another, in any order of destruction") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  constexpr std::size_t size = 5000;
  void* memory = nullptr;
  {
    const cuda::DeviceGuard entered(0);
    REQUIRE(::cudaHostAlloc(&memory, size, cudaHostAllocPortable) == cudaSuccess);
  }
  auto* const data = static_cast<char*>(memory);
  using Bytes = fanout::Tensor<char, 1>;
  const auto adopt = [](char* at, std::size_t bytes) {
    return cuda::adopt_pinned(
        at, [](char*) {}, bytes);
  };
  const auto known = [&](std::size_t from, std::size_t bytes) {
    return cuda::detail::pinned_blocks().use(data + from, bytes, stream);
  };
  const auto all_known = [&] { return known(0, size) && known(0, 1) && known(100, size - 100) && known(size - 1, 1); };
  for (const std::size_t at : {std::size_t{0}, std::size_t{100}}) {
    for (const bool empty_first : {true, false}) {
      for (const bool empty_goes_first : {true, false}) {
        CAPTURE(at);
        CAPTURE(empty_first);
        CAPTURE(empty_goes_first);
        Bytes full, empty, other;
        if (empty_first) empty = adopt(data + at, 0);
        CHECK_FALSE(known(at, 1));
        full = adopt(data, size);
        if (!empty_first) empty = adopt(data + at, 0);
        other = adopt(data + at, 0);
        CHECK(all_known());
        CHECK_FALSE(known(at, size + 1 - at));
        (empty_goes_first ? empty : full) = {};
        CHECK(all_known() == empty_goes_first);
        CHECK(known(at, 1) == empty_goes_first);
        (empty_goes_first ? full : empty) = {};
        CHECK_FALSE(known(at, 1));
        CHECK_FALSE(known(0, 1));
      }
    }
  }
  const cuda::DeviceGuard entered(0);
  CHECK(::cudaFreeHost(memory) == cudaSuccess);
}

TEST_CASE("adopting memory that is not pinned is refused and frees it") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  int freed = 0;
  int value = 0;
  const auto free = [&freed](int*) { ++freed; };
  CHECK_THROWS_AS(cuda::adopt_pinned(&value, free, 1), fanout::InvalidArgument);
  CHECK(freed == 1);
  CHECK_THROWS_AS(cuda::adopt_pinned(&value, free, -1), fanout::ShapeMismatch);
  CHECK(freed == 2);
}

TEST_CASE("adopting memory unknown to the runtime is refused, and other failures are reported as themselves") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  int freed = 0;
  int value = 0;
  const auto adopt = [&] {
    return cuda::adopt_pinned(
        &value, [&freed](int*) { ++freed; }, 1);
  };
  stand_in_fail("cudaPointerGetAttributes", 1, 1, cudaErrorInvalidValue);  // as older runtimes do
  CHECK(fanout_test::message_of(adopt).find("memory to be taken over as pinned") == 0);
  CHECK(freed == 1);
  stand_in_fail("cudaPointerGetAttributes", 1, 1, cudaErrorNotSupported);
  CHECK_THROWS_AS(adopt(), cuda::CudaError);
  CHECK(freed == 2);
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
}
