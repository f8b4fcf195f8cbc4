// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout with simulated devices: for tests of split policies, and of what a program does if a device is slow,
// full or lost.
#include <fanout/base/requirements.hpp>
#include <fanout/fanout.hpp>
#include <fanout/simulated/simulated_device.hpp>
#include <fanout/simulated/simulated_device_options.hpp>
#include <fanout/simulated/simulated_devices.hpp>
