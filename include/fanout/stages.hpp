// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout, and models in stages on different devices.
#include <fanout/base/requirements.hpp>
#include <fanout/fanout.hpp>
#include <fanout/model/saved.hpp>
#include <fanout/model/slice.hpp>
#include <fanout/schedule/partition_layers.hpp>
#include <fanout/schedule/pipeline_options.hpp>
#include <fanout/schedule/pipeline_plan.hpp>
#include <fanout/schedule/schedule.hpp>
#include <fanout/stages/measure_layers.hpp>
#include <fanout/stages/no_gradients.hpp>
#include <fanout/stages/pipeline.hpp>
#include <fanout/stages/recompute.hpp>
#include <fanout/stages/stage.hpp>
#include <fanout/stages/stage_error.hpp>
