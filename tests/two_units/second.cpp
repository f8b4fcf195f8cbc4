// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/fanout.hpp>

int version_seen_by_second();

int version_seen_by_second() {
  return FANOUT_VERSION_MAJOR * 10000 + FANOUT_VERSION_MINOR * 100 + FANOUT_VERSION_PATCH;
}
