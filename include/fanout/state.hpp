// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout, and files that keep the state of trees and models.
#include <fanout/base/requirements.hpp>
#include <fanout/fanout.hpp>
#include <fanout/state/format_error.hpp>
#include <fanout/state/load.hpp>
#include <fanout/state/loaded_tree.hpp>
#include <fanout/state/save.hpp>
#include <fanout/state/state_mismatch.hpp>
#include <fanout/state/strip_prefix.hpp>
