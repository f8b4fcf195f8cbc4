// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/version.hpp>

#include <doctest/doctest.h>

#include <string>

#if FANOUT_VERSION < 100 || FANOUT_VERSION_MAJOR > 99 || FANOUT_VERSION_MINOR > 99 || FANOUT_VERSION_PATCH > 99
#error "the preprocessor knows no version"
#endif

TEST_CASE("the version is that of the project") {
  const int version = FANOUT_VERSION;
  CHECK(version == 10'000 * FANOUT_VERSION_MAJOR + 100 * FANOUT_VERSION_MINOR + FANOUT_VERSION_PATCH);
  CHECK(std::to_string(FANOUT_VERSION_MAJOR) + '.' + std::to_string(FANOUT_VERSION_MINOR) + '.' +
            std::to_string(FANOUT_VERSION_PATCH) ==
        FANOUT_PROJECT_VERSION);
}
