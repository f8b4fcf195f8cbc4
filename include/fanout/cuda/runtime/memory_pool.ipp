// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/memory_pool.hpp>

#include <new>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

void require_pools(GpuState& gpu) {
  int supported = 0;
  check(::cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, gpu.index()), "cudaDeviceGetAttribute",
        gpu.index());
  if (supported != 0) return;
  throw CudaError(
      explain({.what = "no memory pools on " + name_of_gpu(gpu.index()),
               .where = "the first allocation on it",
               .expected = "a GPU and a driver with cudaMallocAsync",
               .found = "cudaDevAttrMemoryPoolsSupported is 0, as on some virtual GPUs",
               .advice = "use a whole GPU or a MIG instance, leave this one out by CUDA_VISIBLE_DEVICES, or "
                         "use fanout::host_devices()"}),
      cudaErrorNotSupported);
}

cudaMemPool_t pool_of(GpuState& gpu) {
  if (cudaMemPool_t known = gpu.pool().load(fanout::detail::MemoryOrder::acquire)) return known;
  const DeviceGuard entered(gpu);
  const fanout::detail::ForkSafeLock making(gpu.making());
  if (cudaMemPool_t known = gpu.pool().load(fanout::detail::MemoryOrder::acquire)) return known;
  require_pools(gpu);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, gpu.index()};
  cudaMemPool_t made = nullptr;
  check(::cudaMemPoolCreate(&made, &properties), "cudaMemPoolCreate", gpu.index());
  std::uint64_t keep = UINT64_MAX;
  int never = 0;
  cudaError_t status = ::cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &keep);
  if (status == cudaSuccess) {
    status = ::cudaMemPoolSetAttribute(made, cudaMemPoolReuseAllowInternalDependencies, &never);
  }
  if (status != cudaSuccess) {
    note(::cudaMemPoolDestroy(made), gpu.index());
    refuse(status, "cudaMemPoolSetAttribute", gpu.index());
  }
  gpu.pool().store(made, fanout::detail::MemoryOrder::release);
  return made;
}

void keep_block(StreamRef stream, void* data, std::size_t bytes) noexcept {
  KeptBlock& kept = gpus[stream.device()].gpu.load(fanout::detail::MemoryOrder::acquire)->kept_block();
  {
    const fanout::detail::ForkSafeLock keeping(kept.mutex);
    std::swap(kept.data, data);
    std::swap(kept.bytes, bytes);
    kept.stream = stream.get();
  }
  if (data != nullptr) release_in(stream, data, bytes);
}

void* take_kept_block(GpuState& gpu, std::size_t bytes) {
  gpu.require();
  KeptBlock& kept = gpu.kept_block();
  const fanout::detail::ForkSafeLock taking(kept.mutex);
  if (kept.data == nullptr || kept.bytes != bytes) return nullptr;
  return std::exchange(kept.data, nullptr);
}

void drop_kept_block(GpuState& gpu) noexcept {
  KeptBlock& kept = gpu.kept_block();
  const fanout::detail::ForkSafeLock dropping(kept.mutex);
  if (kept.data == nullptr) return;
  release_in(StreamRef(kept.stream, gpu.index()), std::exchange(kept.data, nullptr), kept.bytes);
}

void trim_pool(GpuState& gpu) {
  if (gpu.known_context() == nullptr) return;
  const DeviceGuard entered(gpu);
  drop_kept_block(gpu);
  cudaMemPool_t pool = gpu.pool().load(fanout::detail::MemoryOrder::acquire);
  if (pool == nullptr) return;
  // The pool keeps released memory until the host has synchronized with the stream of the release.
  check(::cudaDeviceSynchronize(), "cudaDeviceSynchronize", gpu.index());
  check(::cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo", gpu.index());
}

PoolUse pool_use(GpuState& gpu) {
  PoolUse use{.allocated = gpu.held_bytes().now(), .most_allocated = gpu.held_bytes().most()};
  cudaMemPool_t pool = gpu.pool().load(fanout::detail::MemoryOrder::acquire);
  if (pool == nullptr) return use;
  const DeviceGuard entered(gpu);
  const auto read = [&](cudaMemPoolAttr attribute, std::uint64_t& value) {
    check(::cudaMemPoolGetAttribute(pool, attribute, &value), "cudaMemPoolGetAttribute", gpu.index());
  };
  read(cudaMemPoolAttrReservedMemCurrent, use.reserved);
  read(cudaMemPoolAttrReservedMemHigh, use.most_reserved);
  // A peak that was reset starts at 0, but it is at least what is held.
  if (use.most_reserved < use.reserved) use.most_reserved = use.reserved;
  return use;
}

void reset_peaks(GpuState& gpu) {
  gpu.held_bytes().reset_most();
  cudaMemPool_t pool = gpu.pool().load(fanout::detail::MemoryOrder::acquire);
  if (pool == nullptr) return;
  const DeviceGuard entered(gpu);
  std::uint64_t none = 0;
  check(::cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &none), "cudaMemPoolSetAttribute", gpu.index());
}

MemoryInfo memory_info_of(GpuState& gpu) {
  const DeviceGuard entered(gpu);
  MemoryInfo info;
  check(::cudaMemGetInfo(&info.free, &info.total), "cudaMemGetInfo", gpu.index());
  return info;
}

void* allocate_in(StreamRef stream, std::size_t bytes) {
  GpuState& gpu = gpu_at(stream.device());
  const MemorySource* const source = gpu.source().load(fanout::detail::MemoryOrder::acquire);
  cudaMemPool_t pool = source == nullptr ? pool_of(gpu) : nullptr;
  const OnGpu entered(gpu);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt != 0) trim_pool(gpu);
    if (void* const data =
            source != nullptr ? allocate_from(*source, stream, bytes) : allocate_from(pool, stream, bytes))
      return data;
  }
  const MemoryInfo info = memory_info_of(gpu);
  throw OutOfMemory(
      explain({.what = "out of memory of " + name_of_gpu(gpu.index()),
               .expected = std::to_string(bytes) + " bytes",
               .found = std::to_string(info.free) + " bytes free of " + std::to_string(info.total) + ", and " +
                        std::to_string(pool_use(gpu).allocated) + " in use by fanout in this process",
               .advice = "use smaller batches or more devices"}));
}

void* allocate_from(const MemorySource& source, StreamRef stream, std::size_t bytes) {
  try {
    return source.allocate(source.of, bytes, stream.get());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* allocate_from(cudaMemPool_t pool, StreamRef stream, std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = ::cudaMallocFromPoolAsync(&data, bytes, pool, stream.get());
  if (status == cudaErrorMemoryAllocation) {
    note(status, stream.device());
    return nullptr;
  }
  check(status, "cudaMallocFromPoolAsync", stream.device());
  return data;
}

void release_in(StreamRef stream, void* data, std::size_t bytes) noexcept {
  GpuState& gpu = *gpus[stream.device()].gpu.load(fanout::detail::MemoryOrder::acquire);
  const QuietGuard entered(gpu);
  if (!entered.entered()) return;
  if (const MemorySource* const source = gpu.source().load(fanout::detail::MemoryOrder::acquire))
    return source->release(source->of, data, bytes, stream.get());
  note(::cudaFreeAsync(data, stream.get()), stream.device());
}

}}}  // namespace fanout::v0::cuda::detail
