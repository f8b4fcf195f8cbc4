// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a source.hpp is for programs that define FANOUT_SEPARATE_COMPILATION in all their files
#if defined(FANOUT_CONTROL)
#define FANOUT_SEPARATE_COMPILATION
#endif
#include <fanout/source.hpp>

int main() {}
