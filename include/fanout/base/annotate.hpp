// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

// The few marks that compilers force on us. CUDA is chosen by including a header, so FANOUT_HOST_DEVICE only tells
// nvcc that a function may also be called in a kernel; no type and no layout depends on it.
#if defined(__CUDACC__)
#define FANOUT_HOST_DEVICE __host__ __device__
#else
#define FANOUT_HOST_DEVICE
#endif

// What must be one object in the whole process, also when a shared library is built with -fvisibility=hidden.
#if defined(__GNUC__)
#define FANOUT_EXPORT __attribute__((visibility("default")))
#else
#define FANOUT_EXPORT
#endif
