// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "side.hpp"

FANOUT_TEST_SIDE(right)
