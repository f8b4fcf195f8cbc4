// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout for host devices.

#include <fanout/base/requirements.hpp>
#include <fanout/base/version.hpp>
#include <fanout/device/first_available.hpp>
#include <fanout/device/indices.hpp>
#include <fanout/memory/rows_of.hpp>
#include <fanout/memory/to.hpp>
#include <fanout/parallel/launch.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/parallel/shared.hpp>
#include <fanout/plan/chunk_split.hpp>
#include <fanout/plan/weighted_split.hpp>
