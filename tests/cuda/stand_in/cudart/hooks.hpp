// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a library that stands on the runtime needs of the stand-in: that for NCCL.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {

/// Counts the call of `function`. 0, or the failure that a test wants, or the reason why no call works now.
int stand_in_enter(const char* function);

void stand_in_report(const char* call, const char* what);

/// One more, or one less, of a kind of object that should not be left at exit.
void stand_in_add_alive(const char* kind, int change);

/// Memory that an operation reads or writes, and the other devices that read or write it, too.
struct stand_in_range {
  const void* pointer;
  std::size_t bytes;
  const int* peers;
  std::size_t peer_count;
};

/// A kernel of NCCL: `function(data)` in the order of the stream, which is one of the device's; later `release(data)`,
/// even if the device runs nothing more. Each range has to be in one allocation of the device, to which its peers have
/// access, if they can reach the device at all. Kernels of several communicators have to be in one order on each
/// device: else one that runs may keep the device from running another one, for which the other devices wait. 0, or a
/// cudaError_t: nothing was appended then, and nothing is released.
int stand_in_launch(const char* call, const void* communicator, int device, cudaStream_t stream,
                    const stand_in_range* ranges, std::size_t count, void (*function)(void*), void (*release)(void*),
                    void* data);

}  // extern "C"
