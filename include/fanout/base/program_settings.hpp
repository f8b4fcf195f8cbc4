// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <fanout/base/checks.hpp>
#include <fanout/base/version.hpp>

// Settings that all files of a program must share. Each file defines absolute symbols, whose values are its settings. A
// linker refuses a symbol with two values, and names it. The symbols take no memory. They are hidden, so each shared
// library has its own.

#if defined(__ELF__) && !defined(__CUDA_ARCH__)
#define FANOUT_TEXT_OF(x) #x
#define FANOUT_SETTING(name, value)                                                    \
  asm(".globl fanout_files_differ_in_" #name "\n.hidden fanout_files_differ_in_" #name \
      "\n.set fanout_files_differ_in_" #name ", " FANOUT_TEXT_OF(value))

FANOUT_SETTING(FANOUT_VERSION, FANOUT_VERSION);
FANOUT_SETTING(FANOUT_CHECKS, FANOUT_CHECKS);
#if defined(FANOUT_SEPARATE_COMPILATION)
FANOUT_SETTING(FANOUT_SEPARATE_COMPILATION, 1);
#else
FANOUT_SETTING(FANOUT_SEPARATE_COMPILATION, 0);
#endif
#if defined(_LIBCPP_ABI_VERSION)
FANOUT_SETTING(standard_library, 256 + _LIBCPP_ABI_VERSION);
#else
FANOUT_SETTING(standard_library, _GLIBCXX_USE_CXX11_ABI);
#endif

#undef FANOUT_SETTING
#undef FANOUT_TEXT_OF
#endif
