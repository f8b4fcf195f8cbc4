// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program that asks for GPUs, compiled by g++. It needs the toolkit; a GPU or a driver it does without.
#include <cstdio>
#include <string>

#include <fanout/cuda.hpp>

int main() {
  if (fanout::cuda::is_available()) {
    std::printf("GPUs: %d\n", fanout::cuda::device_count());
  } else {
    const std::string reason = fanout::cuda::unavailable_reason();
    std::printf("no GPU: %s\n", reason.c_str());
    return reason.empty() ? 1 : 0;
  }
}
