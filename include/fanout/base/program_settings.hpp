// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <fanout/base/checks.hpp>
#include <fanout/base/version.hpp>

// Settings that all files of a program must share. Each file defines a symbol for each setting, in a section group
// whose name has the value. A linker keeps one of the groups of a name. So it finds two definitions if files differ,
// and names the symbol. The symbols take no memory. They are hidden, so each shared library has its own.

#if defined(__ELF__) && !defined(__CUDA_ARCH__)
#define FANOUT_TEXT_OF(x) #x
#define FANOUT_TEXT(x) FANOUT_TEXT_OF(x)
// Link-time optimisation may join many files to one, which defines each symbol once.
#define FANOUT_SETTING(name, value)                                                                              \
  asm(".ifndef fanout_" name "_is_" value "\n.pushsection .rodata.fanout_settings,\"aG\",%progbits,fanout_" name \
      "_" value ",comdat\nfanout_" name "_is_" value ":\n.globl fanout_files_differ_in_" name                    \
      "\n.hidden fanout_files_differ_in_" name "\nfanout_files_differ_in_" name ":\n.popsection\n.endif")

namespace fanout { inline namespace v0 { namespace detail {

// In a function, since clang's link-time optimisation takes symbols outside of functions for definitions of each file.
[[gnu::used]] static void program_settings() {
  FANOUT_SETTING("FANOUT_VERSION", FANOUT_TEXT(FANOUT_VERSION));
  FANOUT_SETTING("FANOUT_CHECKS", FANOUT_TEXT(FANOUT_CHECKS));
#if defined(FANOUT_SEPARATE_COMPILATION)
  FANOUT_SETTING("FANOUT_SEPARATE_COMPILATION", "1");
#else
  FANOUT_SETTING("FANOUT_SEPARATE_COMPILATION", "0");
#endif
#if defined(_LIBCPP_ABI_VERSION)
  FANOUT_SETTING("standard_library", "libcxx" FANOUT_TEXT(_LIBCPP_ABI_VERSION));
#else
  FANOUT_SETTING("standard_library", "libstdcxx" FANOUT_TEXT(_GLIBCXX_USE_CXX11_ABI));
#endif
}

}}}  // namespace fanout::v0::detail

#undef FANOUT_SETTING
#undef FANOUT_TEXT
#undef FANOUT_TEXT_OF
#endif
