// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include "stand_in.h"

TEST_CASE("the stand-in is there") { CHECK(stand_in_is_here()); }
