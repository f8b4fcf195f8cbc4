// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/availability.hpp>

#include <cstdlib>

namespace fanout { inline namespace v0 { namespace cuda {

std::string unavailable_reason() {
  if (detail::forked_after_use()) return "Cannot re-initialize CUDA in forked subprocess: the parent had used it";
  const detail::GpuCount gpus = detail::count_gpus();
  if (gpus.count > 0) return {};
  std::string reason = detail::text_of_absence(gpus.status);
  if (gpus.status != cudaErrorNoDevice) return reason;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    reason += std::string("; CUDA_VISIBLE_DEVICES is \"") + visible + '"';
  }
  return reason;
}

}}}  // namespace fanout::v0::cuda
