// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two units that include everything link into one program: no definition in a header is doubled.
#include <fanout/fanout.hpp>

int version_seen_by_second();

int main() {
  const int version = FANOUT_VERSION_MAJOR * 10000 + FANOUT_VERSION_MINOR * 100 + FANOUT_VERSION_PATCH;
  return version_seen_by_second() == version ? 0 : 1;
}
