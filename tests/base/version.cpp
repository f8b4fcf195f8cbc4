// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/version.hpp>

#include <doctest/doctest.h>

#include <string>

#if FANOUT_VERSION < 100
#error "the preprocessor knows no version"
#endif

TEST_CASE("the version is that of the project") {
  const int version = FANOUT_VERSION;
  CHECK(std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
            std::to_string(version % 100) ==
        FANOUT_PROJECT_VERSION);
}
