// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout, and what observes calls: reports, traces and, if there is NVTX, ranges for profilers.
#include <fanout/base/requirements.hpp>
#include <fanout/fanout.hpp>
#include <fanout/observe/nvtx_ranges.hpp>
#include <fanout/observe/report.hpp>
#include <fanout/observe/trace.hpp>
#include <fanout/plan/dealt_split.hpp>
#include <fanout/plan/measured_split.hpp>
