// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Tensors, containers and modules of libtorch (https://pytorch.org/cppdocs), on the CPU.

#include <fanout/base/requirements.hpp>

#include <fanout/adapt/torch_containers.hpp>
#include <fanout/adapt/torch_gradients.hpp>
#include <fanout/adapt/torch_model.hpp>
#include <fanout/adapt/torch_modes.hpp>
#include <fanout/adapt/torch_tensor.hpp>
