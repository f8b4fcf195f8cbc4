// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fanout_test {

/// What a test program returns when a test in it was skipped and none failed; CTest knows it.
inline constexpr int skip_return_code = 77;

/// Reports the running test as skipped, since something that it needs is not there (a device, a
/// second core). The test itself then returns. A failure anywhere in the program outweighs it.
void skip(const char* why);

}  // namespace fanout_test
