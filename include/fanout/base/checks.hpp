// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

/// FANOUT_CHECKS is 1 if the library spends time to find mistakes of a `forward`, else 0. Define it for the whole
/// program, never for one translation unit, or leave it to these defaults. It is 1
///
/// 1. in debug builds: neither optimised nor with NDEBUG;
/// 2. with _GLIBCXX_ASSERTIONS or _DEBUG;
/// 3. under a sanitizer that the compiler announces (g++ 12 does not announce UndefinedBehaviorSanitizer);
///
/// and 0 otherwise. No type and no layout depends on it. If it is 1
///
/// - each access to an element is checked, and an index out of range throws InvalidArgument;
/// - host memory of output() and empty() is filled with NaNs, or 0xCD bytes, since its elements are unset.
#if defined(FANOUT_CHECKS)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(_GLIBCXX_ASSERTIONS) || defined(_DEBUG)
#define FANOUT_CHECKS 1
#elif !defined(__OPTIMIZE__) && !defined(NDEBUG)
#define FANOUT_CHECKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define FANOUT_CHECKS 1
#else
#define FANOUT_CHECKS 0
#endif
#else
#define FANOUT_CHECKS 0
#endif
