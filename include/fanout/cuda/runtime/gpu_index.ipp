// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/gpu_index.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

int current_index() {
  refuse_fork();
  const GpuCount known = count_gpus();
  if (known.count == 0) {
    throw InvalidDeviceId(explain({.what = "No CUDA GPUs are available", .found = text_of_absence(known.status)}));
  }
  int index = 0;
  check(::cudaGetDevice(&index), "cudaGetDevice");
  return index;
}

}}}}  // namespace fanout::v0::cuda::detail
