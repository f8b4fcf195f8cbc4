// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout for host devices.

#include <fanout/array/rows_of.hpp>
#include <fanout/array/to.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/version.hpp>
#include <fanout/context/launch.hpp>
#include <fanout/device/first_available.hpp>
#include <fanout/device/indices.hpp>
#include <fanout/model/shared.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/plan/chunk_split.hpp>
#include <fanout/plan/parts.hpp>
#include <fanout/plan/weighted_split.hpp>
