// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The one place where the version stands: CMake and the packages read it from here.
#define FANOUT_VERSION_MAJOR 0
#define FANOUT_VERSION_MINOR 1
#define FANOUT_VERSION_PATCH 0
