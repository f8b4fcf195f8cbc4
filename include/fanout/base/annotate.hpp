// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

/// Lets nvcc call a function in kernels, too. No type and no layout depends on it. CUDA is enabled by including a
/// header.
#if defined(__CUDACC__)
#define FANOUT_HOST_DEVICE __host__ __device__
#else
#define FANOUT_HOST_DEVICE
#endif
