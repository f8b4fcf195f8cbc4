// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/cuda_memory.hpp>
#include <fanout/cuda/transfer/pinned.hpp>
#include <fanout/memory/transfer.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;

namespace {

using Numbers = fanout::Tensor<float, 1>;

Numbers numbers(std::size_t count) {
  Numbers values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

Numbers sent(const Numbers& from, const fanout::backend::Memory& to) {
  Numbers result = Numbers::uninitialized(from.extents(), to);
  fanout::backend::transfer(to, result.data(), from.space(), from.data(), from.storage().bytes());
  return result;
}

bool same(const Numbers& a, const Numbers& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace

TEST_CASE("a tensor lives on a GPU, and is copied, assigned, cleared and moved there") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const fanout::backend::Memory memory = fanout::CudaDevice(0).memory();
  CHECK(fanout::backend::memory_of(memory.space).operations == memory.operations);
  const Numbers original = numbers(1000);
  const Numbers there = sent(original, memory);
  CHECK(there.space() == memory.space);
  CHECK(same(sent(there, {}), original));

  Numbers copy = there;
  CHECK(copy.space() == memory.space);
  CHECK(copy.data() != there.data());
  CHECK(same(sent(copy, {}), original));

  const Numbers cleared(fanout::Extents<1>{1000}, memory);
  CHECK(same(sent(cleared, {}), Numbers(1000)));
  const float* const kept = copy.data();
  copy = cleared;
  CHECK(copy.data() == kept);
  CHECK(same(sent(copy, {}), Numbers(1000)));

  const float* const moved_data = copy.data();
  const Numbers moved = std::move(copy);
  CHECK(moved.data() == moved_data);
  CHECK(Numbers(fanout::Extents<1>{0}, memory).data() == nullptr);
}

TEST_CASE("the host cannot access elements in a GPU's memory") {
  if (!fanout_test::has_gpus(1)) return;
  const Numbers there(fanout::Extents<1>{3}, fanout::CudaDevice(0).memory());
  CHECK_THROWS_AS(static_cast<void>(there.values()), fanout::DeviceMismatch);
#if FANOUT_CHECKS
  CHECK_THROWS_AS(static_cast<void>(there(0)), fanout::DeviceMismatch);
#endif
}

TEST_CASE("a thread's operations on a GPU's memory are in order with its entered device") {
  if (!fanout_test::has_stand_in(1)) return;  // a GPU's memory is written on the host
  const fanout_test::Watched watched;
  const fanout::CudaDevice first(0);
  const fanout::CudaDevice second(0, 1);
  fanout_test::Barrier barrier;
  fanout_test::call_in(first.stream(), barrier);
  {
    // Nothing here waits for the first device's work.
    const auto entered = second.enter();
    Numbers there(fanout::Extents<1>{10}, second.memory());
    float* const data = there.data();
    auto write = [data] { data[3] = 4; };
    fanout_test::call_in(second.stream(), write);
    const Numbers copy = there;
    CHECK(sent(copy, {})(3) == 4.0F);
    fanout::backend::wait_for(second.memory());
    CHECK_FALSE(first.stream().is_idle());
  }
  // Nor does what a thread does that has entered none, and it has happened when it returns.
  const Numbers zeros(fanout::Extents<1>{10}, first.memory());
  const Numbers copy = zeros;
  CHECK(sent(copy, {})(3) == 0.0F);
  CHECK(fanout::cuda::detail::current_streams(fanout::cuda::detail::gpu_at(0)).compute().is_idle());
  fanout::backend::wait_for(first.memory());
  CHECK_FALSE(first.stream().is_idle());
  barrier.open();
  first.synchronize();
  CHECK(first.stream().is_idle());
}

TEST_CASE("copies of a thread that has entered no device are complete when they return") {
  if (!fanout_test::has_stand_in(2)) return;  // GPUs' memory is read on the host
  const fanout_test::Watched watched;
  const fanout::backend::Memory host;
  const fanout::backend::Memory first = fanout::CudaDevice(0).memory();
  const fanout::backend::Memory second = fanout::CudaDevice(1).memory();
  const std::size_t count = 100;
  const std::size_t bytes = count * sizeof(float);
  const Numbers original = numbers(count);
  Numbers pinned = cuda::pinned<float>(count);
  pinned = original;
  const auto shared = [](int gpu) {
    return cuda::detail::streams_of(cuda::detail::gpu_at(gpu), cuda::detail::DeviceStreams::shared).compute();
  };
  // What other threads that have entered no device do with the GPUs takes long.
  auto takes_long = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  const auto delay = [&] {
    for (const int gpu : {0, 1}) fanout_test::call_in(shared(gpu), takes_long);
  };
  const auto is_there = [&](const Numbers& array) {
    return std::equal(original.begin(), original.end(), array.data());
  };

  for (const fanout::backend::Memory& memory : {first, second}) {
    for (const Numbers* source : {&original, &std::as_const(pinned)}) {
      Numbers there(fanout::Extents<1>{count}, memory);
      delay();
      fanout::backend::transfer(memory, there.data(), source->space(), source->data(), bytes);
      CHECK(is_there(there));
      Numbers copy(fanout::Extents<1>{count}, memory);
      delay();
      copy = there;
      CHECK(is_there(copy));
      // To the other GPU, directly and back by way of the host.
      const fanout::backend::Memory& other = memory.space == first.space ? second : first;
      Numbers across(fanout::Extents<1>{count}, other);
      delay();
      fanout::backend::transfer(other, across.data(), there.space(), there.data(), bytes);
      CHECK(is_there(across));
      delay();
      memory.operations->clear(memory.space, copy.data(), bytes);
      CHECK(copy.data()[0] + copy.data()[count - 1] == 0.0F);
      Numbers back(count);
      delay();
      fanout::backend::transfer(host, back.data(), across.space(), across.data(), bytes);
      CHECK(is_there(back));
      delay();
      void* const transferred = fanout::backend::transfer_in(memory, fanout::host_memory, original.data(), bytes);
      CHECK(is_there(Numbers(fanout::detail::Storage(memory, transferred, bytes, nullptr), original.extents())));
    }
  }
  for (const int gpu : {0, 1}) shared(gpu).synchronize();
}

TEST_CASE("devices on one GPU do not wait for each other when they allocate") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice first(0);
  const fanout::CudaDevice second(0, 1);
  const fanout::backend::Memory memory = first.memory();
  second.synchronize();  // after what the tests before gave it
  fanout_test::Barrier barrier;
  fanout_test::call_in(first.stream(), barrier);
  fanout_test::Barrier other;
  namespace runtime = cuda::detail;
  const cuda::StreamRef outside = runtime::streams_of(runtime::gpu_at(0), runtime::DeviceStreams::shared).compute();
  fanout_test::call_in(outside, other);
  void* own = nullptr;
  void* for_all = nullptr;
  {
    const auto entered = first.enter();
    own = memory.operations->allocate(memory.space, 100);
    for_all = memory.operations->allocate_for_all(memory.space, 100);  // waits for neither
  }
  CHECK(second.stream().is_idle());
  {
    const auto entered = second.enter();  // the memory is there for the second device, too
    memory.operations->clear(memory.space, for_all, 100);
    second.synchronize();
  }
  other.open();
  barrier.open();
  outside.synchronize();
  first.synchronize();
  for (void* const data : {own, for_all}) memory.operations->release(memory.space, data, 100, nullptr);
}

TEST_CASE("rule 11: an upload to a GPU does not wait for its earlier work") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice device(0);
  const Numbers original = numbers(1000);
  fanout_test::Barrier barrier;
  fanout_test::call_in(device.stream(), barrier);
  fanout::backend::Completion of_earlier_call = device.completion();
  void* data = nullptr;
  {
    const auto entered = device.enter();
    data =
        fanout::backend::transfer_in(device.memory(), fanout::host_memory, original.data(), original.storage().bytes());
  }
  cuda::detail::streams_of(cuda::detail::gpu_at(0), 0).copies().synchronize();
  CHECK_FALSE(device.stream().is_idle());
  barrier.open();
  of_earlier_call.wait();
  device.synchronize();
  const Numbers there(fanout::detail::Storage(device.memory(), data, original.storage().bytes(), nullptr),
                      original.extents());
  CHECK(same(sent(there, {}), original));
}

TEST_CASE("memory of a GPU is given back on any thread, and all of it") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice device(0, 1);
  const auto allocated = [&device] {
    fanout::backend::wait_for(device.memory());
    return cuda::detail::pool_use(cuda::detail::gpu_at(0)).allocated;
  };
  const std::uint64_t before = allocated();
  {
    Numbers there = [&device] {
      const auto entered = device.enter();
      Numbers made(fanout::Extents<1>{1000}, device.memory());
      device.synchronize();
      return made;
    }();
    CHECK(allocated() > before);
    std::thread([moved = std::move(there)]() mutable { moved = {}; }).join();
  }
  CHECK(allocated() == before);
}

TEST_CASE("memory that was released last is used again by the next tensor of its size, and by no other") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const fanout::backend::Memory memory = fanout::CudaDevice(0).memory();
  const float* released = nullptr;
  {
    const Numbers first(fanout::Extents<1>{1000}, memory);
    released = first.data();
  }
  const Numbers smaller(fanout::Extents<1>{10}, memory);
  CHECK(smaller.data() != released);
  const Numbers again(fanout::Extents<1>{1000}, memory);
  CHECK(again.data() == released);
}

TEST_CASE("releasing memory of a lost GPU or after the runtime's end is silent") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice device(0);
  Numbers lost(fanout::Extents<1>{10}, device.memory());
  float* const data = lost.data();
  auto fail = [] { stand_in_poison(0, cudaErrorIllegalAddress); };
  fanout_test::call_in(device.stream(), fail);
  CHECK_THROWS_AS(device.synchronize(), cuda::DeviceLost);
  const long calls = stand_in_calls(nullptr);
  CHECK_THROWS_AS(Numbers(fanout::Extents<1>{10}, device.memory()), cuda::DeviceLost);
  CHECK_THROWS_AS(static_cast<void>(sent(lost, {})), cuda::DeviceLost);
  CHECK_NOTHROW(lost = {});
  CHECK(stand_in_calls(nullptr) == calls);
  cuda::detail::losses[0].code.store(cudaSuccess);
  stand_in_poison(0, 0);
  cuda::detail::release_in(device.stream(), data, 10 * sizeof(float));

  const auto entered = device.enter();  // or the memory would be kept
  Numbers late(fanout::Extents<1>{10}, device.memory());
  float* const late_data = late.data();
  stand_in_set_unloading(1);
  CHECK_NOTHROW(late = {});
  stand_in_set_unloading(0);
  cuda::detail::release_in(device.stream(), late_data, 10 * sizeof(float));
}

TEST_CASE("tensors of an output buffer in a GPU's memory release the buffer") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const fanout::backend::Memory memory = fanout::CudaDevice(0).memory();
  const fanout::backend::MemoryOperations* const windows = fanout::detail::windows_in(memory);
  REQUIRE(windows != nullptr);
  CHECK(windows->fresh == memory.operations);
  auto* const buffer = new fanout::detail::OutputBuffer(memory, 10, sizeof(float));
  buffer->retain();
  Numbers window(fanout::detail::Storage({memory.space, windows}, buffer->row(2), 3 * sizeof(float), buffer),
                 fanout::Extents<1>{3});
  buffer->release();
  const Numbers original = numbers(3);
  fanout::backend::transfer(window.storage().memory(), window.data(), fanout::host_memory, original.data(), 12);
  const Numbers copy = window;
  CHECK(copy.storage().memory().operations == memory.operations);
  window = {};
  CHECK(same(sent(copy, {}), original));
}
