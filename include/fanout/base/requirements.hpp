// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks what fanout needs of the system and the compiler. Each header includes this before any other code of fanout,
// directly or through other headers. An #error does not stop a compiler but a missing file does, so no other errors
// follow.

#if defined(_WIN32) || !__has_include(<pthread.h>)
#error "fanout needs Linux or another POSIX system; on Windows, build it in WSL (README.md, Using it)"
#include <requirements_not_met>
#elif !defined(__GNUC__)
#error "fanout needs g++, clang, or nvcc with one of them (README.md, Using it)"
#include <requirements_not_met>
#elif __SIZEOF_POINTER__ < 8
#error "fanout needs a 64-bit system, and this compiler makes 32-bit programs (README.md, Using it)"
#include <requirements_not_met>
#elif __cplusplus < 202002L
#error "fanout needs C++20: compile with -std=c++20 or newer"
#include <requirements_not_met>
#elif !defined(__cpp_exceptions)
#error "fanout needs exceptions, which tell what failed: compile without -fno-exceptions"
#include <requirements_not_met>
#endif
