// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program, outside the repository: it knows only where the headers are.
#include <fanout/fanout.hpp>

int main() { return FANOUT_VERSION_MAJOR == 0 ? 0 : 1; }
