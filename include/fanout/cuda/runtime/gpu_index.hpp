// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>

#include <cuda_runtime_api.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

namespace detail {

/// The index of the thread's current device. Makes no context. Throws InvalidDeviceId if there is no GPU.
FANOUT_INLINE int current_index();

}  // namespace detail

/// Selects a GPU as an argument: an index among the visible ones, a device, or by default the thread's current device.
/// Checked when it is used, not when it is made.
class GpuIndex {
 public:
  GpuIndex() noexcept = default;
  GpuIndex(int index) noexcept  // NOLINT(google-explicit-constructor): is an index
      : given_(true), id_{.kind = "cuda", .index = index} {}
  template <class D>
    requires requires(const D& device) {
      { device.id() } -> std::convertible_to<DeviceId>;
    }
  GpuIndex(const D& device) noexcept : given_(true), id_(device.id()) {}  // NOLINT(google-explicit-constructor)

  /// The index, or the state, of the GPU. Throws InvalidDeviceId, `Invalid device id`, if there is no such GPU.
  int get() const { return gpu().index(); }
  detail::GpuState& gpu() const { return detail::gpu_at(index("Invalid device id")); }
  /// The index; throws with the text `Invalid peer device id`.
  int get_peer() const {
    const int peer = index("Invalid peer device id");
    if (peer < 0 || peer >= detail::count_gpus().count) detail::refuse_index(peer, "Invalid peer device id");
    return peer;
  }

 private:
  int index(const char* what) const {
    if (!given_) return detail::current_index();
    if (id_.kind == DeviceKind("cuda")) return id_.index;
    throw InvalidDeviceId(explain({.what = what, .expected = "a CUDA device", .found = to_string(id_)}));
  }

  bool given_ = false;
  DeviceId id_{.kind = "cuda"};
};

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/gpu_index.ipp>
#endif
