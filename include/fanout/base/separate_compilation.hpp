// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

/// Bodies of functions that are no templates stand in `.ipp` files beside their headers, which include them. With
/// FANOUT_SEPARATE_COMPILATION, defined for all files of a program, they do not. Then one file of the program includes
/// <fanout/source.hpp>. The CMake target `fanout::compiled` is that file, and defines the macro.
///
/// FANOUT_INLINE stands in front of the declaration of such a function.
#if defined(FANOUT_SEPARATE_COMPILATION)
#define FANOUT_INLINE
#else
#define FANOUT_INLINE inline
#endif
