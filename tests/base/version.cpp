// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/base/version.hpp>

// The comparison itself, with versions of our own in place of the library's.
namespace {

#pragma push_macro("FANOUT_VERSION_MAJOR")
#pragma push_macro("FANOUT_VERSION_MINOR")
#pragma push_macro("FANOUT_VERSION_PATCH")
#undef FANOUT_VERSION_MAJOR
#undef FANOUT_VERSION_MINOR
#undef FANOUT_VERSION_PATCH
#define FANOUT_VERSION_MAJOR 2
#define FANOUT_VERSION_MINOR 3
#define FANOUT_VERSION_PATCH 4

static_assert(FANOUT_VERSION_AT_LEAST(2, 3, 4));
static_assert(FANOUT_VERSION_AT_LEAST(2, 3, 3));
static_assert(!FANOUT_VERSION_AT_LEAST(2, 3, 5));
static_assert(FANOUT_VERSION_AT_LEAST(2, 2, 9), "an older minor version counts more than its patches");
static_assert(!FANOUT_VERSION_AT_LEAST(2, 4, 0), "and so does a newer one");
static_assert(FANOUT_VERSION_AT_LEAST(1, 9, 9), "an older major version counts more than what is below it");
static_assert(!FANOUT_VERSION_AT_LEAST(3, 0, 0), "and so does a newer one");
static_assert(!FANOUT_VERSION_AT_LEAST(2, 3, true ? 5 : 0), "any expression may stand there");

#if !FANOUT_VERSION_AT_LEAST(2, 3, 4) || FANOUT_VERSION_AT_LEAST(2, 3, 5)
#error "the preprocessor compares differently"
#endif

#pragma pop_macro("FANOUT_VERSION_PATCH")
#pragma pop_macro("FANOUT_VERSION_MINOR")
#pragma pop_macro("FANOUT_VERSION_MAJOR")

}  // namespace

TEST_CASE("the version is at least itself, and not the next one") {
#if FANOUT_VERSION_AT_LEAST(FANOUT_VERSION_MAJOR, FANOUT_VERSION_MINOR, FANOUT_VERSION_PATCH)
  CHECK_FALSE(FANOUT_VERSION_AT_LEAST(FANOUT_VERSION_MAJOR, FANOUT_VERSION_MINOR, FANOUT_VERSION_PATCH + 1));
  CHECK(FANOUT_VERSION_AT_LEAST(0, 0, 0));
#else
  FAIL("the version is not even itself");
#endif
}
