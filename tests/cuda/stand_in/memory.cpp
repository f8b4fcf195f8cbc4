// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <vector>

#include "use.hpp"

using namespace stand_in_test;

TEST_CASE("bytes copied to a device and back are the same, and each direction is counted") {
  const Fresh fresh;
  stand_in_forget_counts();
  auto* const device = device_ints(100);
  auto* const pinned = pinned_ints(100);
  const auto stream = make_stream();
  std::vector<int> pageable(100), back(100);
  for (int i = 0; i < 100; ++i) pinned[i] = pageable[static_cast<std::size_t>(i)] = i;
  ok(cudaMemcpyAsync(device, pinned, 400, cudaMemcpyHostToDevice, stream));
  ok(cudaMemcpyAsync(back.data(), device, 400, cudaMemcpyDeviceToHost, stream));
  CHECK(back == pageable);  // such a target has been written when the call returns
  ok(cudaMemsetAsync(device, 0, 200, stream));
  ok(cudaMemcpyAsync(pinned, device, 400, cudaMemcpyDefault, stream));
  ok(cudaStreamSynchronize(stream));
  CHECK(pinned[49] == 0);
  CHECK(pinned[50] == 50);
  {
    Barrier barrier(stream);
    ok(cudaMemcpyAsync(device, pageable.data(), 400, cudaMemcpyHostToDevice, stream));
    pageable.assign(100, 0);  // such a source has been read when the call returns
    barrier.open();
    ok(cudaStreamSynchronize(stream));
  }
  ok(cudaMemcpy(pinned, device, 400, cudaMemcpyDeviceToHost));
  CHECK(pinned[99] == 99);
  CHECK(stand_in_copies("h2d pinned") == 1);
  CHECK(stand_in_copies("h2d pageable") == 1);
  CHECK(stand_in_copies("d2h pinned") == 2);
  CHECK(stand_in_copies("d2h pageable") == 1);
  CHECK(stand_in_copied_bytes("d2h pinned") == 800);
  CHECK(stand_in_calls("cudaMemcpyAsync") == 4);
  ok(cudaStreamDestroy(stream));
  ok(cudaFree(device));
  ok(cudaFreeHost(pinned));
}

TEST_CASE("pointers tell where they are") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  auto* const device = device_ints(4);
  auto* const pinned = pinned_ints(4);
  int mine = 0;
  cudaPointerAttributes attributes{};
  ok(cudaPointerGetAttributes(&attributes, device + 3));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 1);
  ok(cudaPointerGetAttributes(&attributes, pinned + 3));
  CHECK(attributes.type == cudaMemoryTypeHost);
  ok(cudaPointerGetAttributes(&attributes, &mine));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  ok(cudaFree(device));
  ok(cudaFreeHost(pinned));
}

TEST_CASE("a device has a limited amount of memory") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  stand_in_set_device(1, "small", 1 << 20, 4, 7, 5);
  stand_in_set_used_by_others(1, 1 << 18);
  std::size_t free = 0, total = 0;
  ok(cudaMemGetInfo(&free, &total));
  CHECK(total == 1 << 20);
  CHECK(free == 3 << 18);
  void *first = nullptr, *second = nullptr;
  CHECK(cudaMalloc(&first, 1 << 20) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  ok(cudaMalloc(&first, 1 << 19));
  CHECK(cudaMallocAsync(&second, 1 << 19, nullptr) == cudaErrorMemoryAllocation);
  ok(cudaMallocAsync(&second, 1 << 18, nullptr));
  ok(cudaMemGetInfo(&free, &total));
  CHECK(free == 0);
  ok(cudaFree(first));
  ok(cudaFreeAsync(second, nullptr));
  ok(cudaDeviceSynchronize());
  CHECK(stand_in_bytes_in_use(1) == 0);
  stand_in_set_used_by_others(1, 0);
  stand_in_set_device(1, "Stand-in 1", std::size_t{1} << 30, 16, 9, 0);
}

TEST_CASE("a pool keeps memory up to its threshold and reports what it has") {
  const Fresh fresh;
  ok(cudaSetDevice(0));
  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location = {cudaMemLocationTypeDevice, 0};
  wanted.maxSize = 64 << 20;
  cudaMemPool_t pool = nullptr;
  ok(cudaMemPoolCreate(&pool, &wanted));
  const auto value = [&](cudaMemPoolAttr attribute) {
    unsigned long long number = 0;
    ok(cudaMemPoolGetAttribute(pool, attribute, &number));
    return number;
  };
  const auto stream = make_stream();
  void* memory = nullptr;
  CHECK(cudaMallocFromPoolAsync(&memory, 65 << 20, pool, stream) == cudaErrorMemoryAllocation);
  ok(cudaMallocFromPoolAsync(&memory, 3 << 20, pool, stream));
  CHECK(value(cudaMemPoolAttrUsedMemCurrent) == 3 << 20);
  CHECK(value(cudaMemPoolAttrReservedMemCurrent) == 32 << 20);
  unsigned long long all = ~0ULL;
  ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  ok(cudaFreeAsync(memory, stream));
  ok(cudaStreamSynchronize(stream));
  CHECK(value(cudaMemPoolAttrUsedMemCurrent) == 0);
  CHECK(value(cudaMemPoolAttrUsedMemHigh) == 3 << 20);
  CHECK(value(cudaMemPoolAttrReservedMemCurrent) == 32 << 20);
  unsigned long long none = 0;
  ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none));
  CHECK(value(cudaMemPoolAttrUsedMemHigh) == 0);
  ok(cudaMemPoolTrimTo(pool, 0));
  CHECK(value(cudaMemPoolAttrReservedMemCurrent) == 0);
  ok(cudaStreamDestroy(stream));
  ok(cudaMemPoolDestroy(pool));
}

TEST_CASE("a pool releases freed memory once the host has waited for work behind the free") {
  const Fresh fresh;
  ok(cudaSetDevice(0));
  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool = nullptr;
  ok(cudaMemPoolCreate(&pool, &wanted));
  unsigned long long all = ~0ULL;
  ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  const auto stream = make_stream();
  const auto other = make_stream();
  cudaEvent_t event = nullptr;
  ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto kept_after = [&](const auto& look) {
    void* memory = nullptr;
    ok(cudaMallocFromPoolAsync(&memory, 1 << 20, pool, stream));
    ok(cudaFreeAsync(memory, stream));
    while (cudaStreamQuery(stream) != cudaSuccess) {
    }
    look();
    ok(cudaMemPoolTrimTo(pool, 0));
    unsigned long long reserved = 0;
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    ok(cudaDeviceSynchronize());
    ok(cudaMemPoolTrimTo(pool, 0));
    return reserved != 0;
  };
  CHECK(kept_after([] {}));
  CHECK(kept_after([&] { ok(cudaStreamSynchronize(other)); }));
  CHECK_FALSE(kept_after([&] { ok(cudaStreamSynchronize(stream)); }));
  CHECK_FALSE(kept_after([] { ok(cudaDeviceSynchronize()); }));
  CHECK_FALSE(kept_after([&] {
    ok(cudaEventRecord(event, stream));
    ok(cudaEventSynchronize(event));
  }));
  CHECK_FALSE(kept_after([&] {
    ok(cudaEventRecord(event, stream));
    ok(cudaStreamWaitEvent(other, event, 0));
    ok(cudaStreamSynchronize(other));
  }));
  ok(cudaEventDestroy(event));
  ok(cudaStreamDestroy(stream));
  ok(cudaStreamDestroy(other));
  ok(cudaMemPoolDestroy(pool));
}

TEST_CASE(
    "a stream waits for the one that still uses the freed memory that it is given, unless the pool forbids that") {
  const Fresh fresh;
  for (const int allowed : {1, 0}) {
    cudaMemPool_t pool = nullptr;
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    ok(cudaMemPoolCreate(&pool, &properties));
    int reuse = -1;
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &reuse));
    CHECK(reuse == 1);
    reuse = allowed;
    ok(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &reuse));
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &reuse));
    CHECK(reuse == allowed);
    const auto busy = make_stream(cudaStreamNonBlocking);
    const auto other = make_stream(cudaStreamNonBlocking);
    void* first = nullptr;
    void* second = nullptr;
    ok(cudaMallocFromPoolAsync(&first, 1000, pool, busy));
    Barrier barrier(busy);
    ok(cudaFreeAsync(first, busy));
    ok(cudaMallocFromPoolAsync(&second, 1000, pool, other));
    if (allowed == 1) {
      CHECK(cudaStreamQuery(other) == cudaErrorNotReady);
    } else {
      ok(cudaStreamSynchronize(other));
    }
    barrier.open();
    ok(cudaFreeAsync(second, other));
    ok(cudaStreamSynchronize(busy));
    ok(cudaStreamSynchronize(other));
    ok(cudaStreamDestroy(busy));
    ok(cudaStreamDestroy(other));
    ok(cudaMemPoolDestroy(pool));
  }
}

TEST_CASE("peer copies are direct if allowed, else through the host, and a corrupting link corrupts one direction") {
  const Fresh fresh;
  stand_in_set_peer(0, 2, 0);
  stand_in_set_corrupting(0, 1, 1);
  ok(cudaSetDevice(0));
  int able = -1;
  ok(cudaDeviceCanAccessPeer(&able, 2, 0));
  CHECK(able == 0);
  CHECK(cudaDeviceEnablePeerAccess(2, 0) == cudaErrorPeerAccessUnsupported);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
  auto* const here = device_ints(50);
  ok(cudaMemset(here, 1, 200));
  ok(cudaDeviceSynchronize());
  ok(cudaSetDevice(1));
  auto* const there = device_ints(50);
  int back[50] = {};
  const auto copy = [&] {
    ok(cudaMemcpyPeer(there, 1, here, 0, 200));
    ok(cudaMemcpy(back, there, 200, cudaMemcpyDeviceToHost));
    return back[0];
  };
  stand_in_forget_counts();
  CHECK(copy() == 0x01010101);
  CHECK(stand_in_copies("peer staged") == 1);
  ok(cudaDeviceEnablePeerAccess(0, 0));
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(copy() != 0x01010101);
  CHECK(stand_in_copies("peer direct") == 1);
  stand_in_set_corrupting(0, 1, 0);
  stand_in_set_corrupting(1, 0, 1);
  CHECK(copy() == 0x01010101);
  CHECK(stand_in_copies("peer direct") == 2);
  ok(cudaDeviceDisablePeerAccess(0));
  CHECK(cudaDeviceDisablePeerAccess(0) == cudaErrorPeerAccessNotEnabled);
  CHECK(copy() == 0x01010101);
  ok(cudaFree(there));
  ok(cudaFree(here));
  stand_in_set_peer(0, 2, 1);
  stand_in_set_corrupting(1, 0, 0);
}
