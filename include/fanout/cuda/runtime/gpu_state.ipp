// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/gpu_state.hpp>

#include <cstdlib>

#include <fanout/base/device_id.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

void refuse_fork() {
  if (!forked_after_use()) [[likely]]
    return;
  throw CudaError(explain({.what = "Cannot re-initialize CUDA in forked subprocess",
                           .advice = "fork before CUDA is used, or start the process with exec"}),
                  cudaErrorInitializationError);
}

GpuCount count_gpus() noexcept {
  if (forked_after_use()) return {0, cudaErrorInitializationError};
  if (const int known = known_count.load(fanout::detail::MemoryOrder::acquire); known > 0) return {known, cudaSuccess};
  int count = 0;
  const cudaError_t status = ::cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    static_cast<void>(::cudaGetLastError());
    return {0, status};
  }
  if (count <= 0) return {0, cudaErrorNoDevice};
  if (count > most_gpus) count = most_gpus;
  std::uint32_t unused = 0;
  first_used_in.compare_exchange_strong(unused, fanout::detail::fork_epoch() + 1);
  known_count.store(count, fanout::detail::MemoryOrder::release);
  return {count, cudaSuccess};
}

ContextHandle GpuState::context() {
  require();
  if (ContextHandle known = known_context()) [[likely]]
    return known;
  const fanout::detail::ForkSafeLock making(making_);
  if (ContextHandle known = known_context()) return known;
  int device = 0;
  ContextHandle made = nullptr;
  check(status_of(driver().get_device(&device, index_)), "cuDeviceGet", index_);
  check(status_of(driver().retain_primary_context(&made, device)), "cuDevicePrimaryCtxRetain", index_);
  context_.store(made, fanout::detail::MemoryOrder::release);
  return made;
}

const cudaDeviceProp& GpuState::properties() {
  if (const cudaDeviceProp* known = properties_.load(fanout::detail::MemoryOrder::acquire)) return *known;
  require();
  const fanout::detail::ForkSafeLock making(making_);
  if (const cudaDeviceProp* known = properties_.load(fanout::detail::MemoryOrder::acquire)) return *known;
  cudaDeviceProp asked{};
  check(::cudaGetDeviceProperties(&asked, index_), "cudaGetDeviceProperties", index_);
  const auto* made = new cudaDeviceProp(asked);
  properties_.store(made, fanout::detail::MemoryOrder::release);
  return *made;
}

void refuse_index(int index, const char* what) {
  const GpuCount known = count_gpus();
  std::string visible = "the index of a visible device, of which there is none: " + text_of_absence(known.status);
  if (known.count > 0) {
    visible = "the index of a visible device (cuda:0";
    for (int i = 1; i < known.count; ++i) visible += ", " + name_of_gpu(i);
    visible += ')';
  }
  std::string hidden;
  if (const char* variable = std::getenv("CUDA_VISIBLE_DEVICES"); variable != nullptr && index >= 0) {
    hidden = "device " + std::to_string(index) + " is not visible (CUDA_VISIBLE_DEVICES=" + variable + ')';
  }
  throw InvalidDeviceId(explain({.what = what, .expected = visible, .found = std::to_string(index), .advice = hidden}));
}

GpuState& gpu_at(int index) {
  if (index < 0 || index >= most_gpus) refuse_index(index);
  GpuState* gpu = gpus[index].gpu.load(fanout::detail::MemoryOrder::acquire);
  if (gpu == nullptr) [[unlikely]] {
    refuse_fork();
    if (index >= count_gpus().count) refuse_index(index);
    auto* made = new GpuState(index);
    if (gpus[index].gpu.compare_exchange_strong(gpu, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *gpu;
}

}}}  // namespace fanout::v0::cuda::detail
