// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

// These ask the CUDA runtime. That starts CUDA in the process, but makes no context.

/// True if the process may use a CUDA device. False without a driver, without a GPU, and in the child of a process that
/// used CUDA before it forked. Never throws.
inline bool is_available() noexcept { return detail::count_gpus().count > 0; }

/// The number of CUDA devices that the process may use: those that CUDA_VISIBLE_DEVICES leaves, numbered from 0. 0 if
/// is_available() is false. Asked anew until it is above 0, then constant. Never throws.
inline int device_count() noexcept { return detail::count_gpus().count; }

/// The reason why is_available() is false, as text; empty if it is true.
FANOUT_INLINE std::string unavailable_reason();

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/availability.ipp>
#endif
