// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

/// Stands in front of the declaration of a function whose body is in an `.ipp` file. The header includes that file, and
/// the function is inline. If all files of a program define FANOUT_SEPARATE_COMPILATION, headers do not include these
/// files. Then one file of the program includes <fanout/source.hpp>, or the program links the CMake target
/// `fanout::compiled`, which also defines the macro.
#if defined(FANOUT_SEPARATE_COMPILATION)
#define FANOUT_INLINE
#else
#define FANOUT_INLINE inline
#endif
