// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

// FANOUT_CHECKS is 1 if the library spends time on finding mistakes of a `forward`, and 0 if it does not. Define it for
// the whole program and not for one unit, or leave it to these defaults. It is 1
//
// 1. in debug builds: neither optimised nor with NDEBUG;
// 2. with _GLIBCXX_ASSERTIONS and with _DEBUG;
// 3. under a sanitizer that the compiler tells of (g++ 12 does not tell of UndefinedBehaviorSanitizer);
//
// and 0 otherwise. No type and no layout depends on it. With 1
//
// - each element that is read or written is looked at, and an index outside of its array throws InvalidArgument;
// - what output() and empty() give in host memory is filled with NaNs, or 0xCD bytes, since its elements are not set.
#if !defined(FANOUT_CHECKS)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(_GLIBCXX_ASSERTIONS) || defined(_DEBUG)
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
#endif
