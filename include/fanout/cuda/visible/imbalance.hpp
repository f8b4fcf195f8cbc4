// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// The figures that are compared between GPUs: bytes of memory, and multiprocessors.
struct GpuSize {
  /// The index among the visible GPUs.
  int index = 0;
  std::size_t memory = 0;
  int multiprocessors = 0;
};

namespace detail {

/// The warning if one GPU has less than 75% of another's `value(size)`; else empty.
FANOUT_INLINE std::string imbalance_of(const GpuSize* sizes, std::size_t count, double (*value)(const GpuSize&));

FANOUT_INLINE std::string imbalance_warning_of(const GpuSize* sizes, std::size_t count);

}  // namespace detail

/// Returns a warning that names two GPUs if the smaller has less than 75% of the larger's memory or, failing that, of
/// its multiprocessors. Empty if they are balanced.
inline std::string imbalance_warning(const std::vector<GpuSize>& sizes) {
  return detail::imbalance_warning_of(sizes.data(), sizes.size());
}

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/visible/imbalance.ipp>
#endif
