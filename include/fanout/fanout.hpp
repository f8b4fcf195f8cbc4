// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout for host devices.

#include <fanout/base/version.hpp>
#include <fanout/parallel/parallel_model.hpp>
