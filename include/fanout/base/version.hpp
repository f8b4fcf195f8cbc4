// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The only place that states the version: CMake, Conan and pkg-config read it from here.

/// The version's first number.
#define FANOUT_VERSION_MAJOR 0
/// The version's second number.
#define FANOUT_VERSION_MINOR 1
/// The version's third number.
#define FANOUT_VERSION_PATCH 0

/// True if this is fanout major.minor.patch or newer. For `#if` and for expressions.
#define FANOUT_VERSION_AT_LEAST(major, minor, patch) \
  (FANOUT_VERSION_MAJOR > (major) ||                 \
   (FANOUT_VERSION_MAJOR == (major) &&               \
    (FANOUT_VERSION_MINOR > (minor) || (FANOUT_VERSION_MINOR == (minor) && FANOUT_VERSION_PATCH >= (patch)))))
