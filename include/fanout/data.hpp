// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout, and what loads data: orders of samples, loaders, and the results of models for a loader's batches.
#include <fanout/base/requirements.hpp>
#include <fanout/data/collate.hpp>
#include <fanout/data/load_error.hpp>
#include <fanout/data/loader.hpp>
#include <fanout/data/loader_options.hpp>
#include <fanout/data/loader_position.hpp>
#include <fanout/data/padded_like_torch.hpp>
#include <fanout/data/result_stream.hpp>
#include <fanout/data/shuffle.hpp>
#include <fanout/fanout.hpp>
