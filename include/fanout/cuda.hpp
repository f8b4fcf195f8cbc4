// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout with CUDA devices, for any C++20 compiler. Needs the headers of the CUDA toolkit. Programs link the
// CUDA runtime, libcudart. Not included here: what needs nvcc (cuda/launch.cuh, adapt/thrust.cuh) or NCCL
// (cuda/nccl.hpp); reports (cuda/peer_report.hpp, cuda/visible/visible_devices_report.hpp); cuda/allocator.hpp.
#include <fanout/base/requirements.hpp>
#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/cuda_devices.hpp>
#include <fanout/cuda/cuda_memory.hpp>
#include <fanout/cuda/current_device.hpp>
#include <fanout/cuda/device_info.hpp>
#include <fanout/cuda/memory_info.hpp>
#include <fanout/cuda/runtime/availability.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/peer_access.hpp>
#include <fanout/cuda/transfer/pinned.hpp>
#include <fanout/cuda/transfer/pinned_memory.hpp>
#include <fanout/device/most_free_memory.hpp>
#include <fanout/fanout.hpp>
