// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <fanout/cuda/nccl/nccl_communicator.hpp>
#include <fanout/cuda/nccl/nccl_error.hpp>
#include <fanout/cuda/nccl/nccl_transport.hpp>

// Programs that include this must link libnccl.
