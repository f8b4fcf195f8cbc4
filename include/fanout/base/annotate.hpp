// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

// The few macros that compilers force on us. CUDA is enabled by including a header.

/// Lets nvcc call a function in kernels, too. No type and no layout depends on it.
#if defined(__CUDACC__)
#define FANOUT_HOST_DEVICE __host__ __device__
#else
#define FANOUT_HOST_DEVICE
#endif

/// For what must be one object in the whole process, also if a shared library is built with -fvisibility=hidden.
#if defined(__GNUC__)
#define FANOUT_EXPORT __attribute__((visibility("default")))
#else
#define FANOUT_EXPORT
#endif
