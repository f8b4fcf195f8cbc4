// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

class DeviceStreams;
class PeerReads;

/// The number of GPUs that the process may use, and the runtime's status if there are none.
struct GpuCount {
  int count = 0;
  cudaError_t status = cudaSuccess;
};

[[gnu::visibility("default")]] inline fanout::detail::Atomic<int> known_count{0};  // 0: not known yet
[[gnu::visibility("default")]] inline fanout::detail::Atomic<std::uint32_t> first_used_in{
    0};  // a fork epoch plus one; 0: not used yet

/// True in the child of a process that used CUDA before it forked. CUDA does not work there: it hangs, or returns a
/// status with many meanings.
inline bool forked_after_use() noexcept {
  const std::uint32_t used = first_used_in.load(fanout::detail::MemoryOrder::acquire);
  return used != 0 && used != fanout::detail::fork_epoch() + 1;
}

inline void refuse_fork() {
  if (!forked_after_use()) [[likely]]
    return;
  throw CudaError(explain({.what = "Cannot re-initialize CUDA in forked subprocess",
                           .advice = "fork before CUDA is used, or start the process with exec"}),
                  cudaErrorInitializationError);
}

/// Asks the runtime, which starts CUDA but makes no context. Returns 0 and the status if there are none. Caches only a
/// count above 0, since a driver may be loaded later. Never throws.
inline GpuCount count_gpus() noexcept {
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

/// The state of one GPU in this process. Made when the GPU is first named, which makes no context. Never destroyed,
/// since tensors may outlive main(). Expensive members are made at their first use.
class GpuState {
 public:
  explicit GpuState(int index) noexcept : index_(index) {}
  GpuState(const GpuState&) = delete;
  GpuState& operator=(const GpuState&) = delete;

  int index() const noexcept { return index_; }
  MemorySpace space() const noexcept { return {.owner = {.kind = "cuda", .index = index_}}; }

  /// Throws if CUDA must not be called for the GPU any more: DeviceLost, or CudaError in a forked child.
  void require() const {
    refuse_fork();
    refuse_lost(index_);
  }
  /// True if require() would not throw. For destructors.
  bool usable() const noexcept {
    return !forked_after_use() && losses[index_].code.load(fanout::detail::MemoryOrder::acquire) == cudaSuccess;
  }

  /// The GPU's primary context, which the runtime uses too. Made at the first call and retained from then on. Throws
  /// DeviceLost and CudaError.
  ContextHandle context() {
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
  /// The context; null before the first use.
  ContextHandle known_context() const noexcept { return context_.load(fanout::detail::MemoryOrder::acquire); }

  /// The runtime's properties of the GPU, cached. Makes no context. Throws DeviceLost and CudaError.
  const cudaDeviceProp& properties() {
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

  /// Lock it to make a member of the GPU's state.
  fanout::detail::ForkSafeMutex& making() noexcept { return making_; }
  /// The pool of the GPU's memory, made by pool_of(), the list of its devices' streams, made by streams_of(), and the
  /// copies that other GPUs make of its memory, made by peer_reads_of().
  fanout::detail::Atomic<cudaMemPool_t>& pool() noexcept { return pool_; }
  fanout::detail::Atomic<DeviceStreams*>& all_streams() noexcept { return all_streams_; }
  fanout::detail::Atomic<PeerReads*>& peer_reads() noexcept { return peer_reads_; }

 private:
  const int index_;
  fanout::detail::Atomic<ContextHandle> context_{nullptr};
  fanout::detail::Atomic<const cudaDeviceProp*> properties_{nullptr};
  fanout::detail::Atomic<cudaMemPool_t> pool_{nullptr};
  fanout::detail::Atomic<DeviceStreams*> all_streams_{nullptr};
  fanout::detail::Atomic<PeerReads*> peer_reads_{nullptr};
  fanout::detail::ForkSafeMutex making_;
};

struct GpuSlot {
  fanout::detail::Atomic<GpuState*> gpu{nullptr};
};
[[gnu::visibility("default")]] inline GpuSlot gpus[most_gpus]{};

/// The reason why there is no GPU, as text. The runtime's text for a missing driver mentions only versions.
inline std::string text_of_absence(cudaError_t status) {
  return text_of(status) + (status == cudaErrorInsufficientDriver ? "; the driver is too old, or there is none" : "");
}

/// Throws InvalidDeviceId: `Invalid device id`, the indices that exist, and CUDA_VISIBLE_DEVICES if that may hide the
/// device.
[[noreturn]] inline void refuse_index(int index, const char* what = "Invalid device id") {
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

/// The GPU of that index among the visible ones. Makes no context. Throws InvalidDeviceId, and CudaError in a forked
/// child.
inline GpuState& gpu_at(int index) {
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
