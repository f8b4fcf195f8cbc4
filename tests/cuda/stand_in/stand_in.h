// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a test can ask of the stand-in for the CUDA runtime, and tell it.
//
// The stand-in is a shared library with the name of the real one, so a program runs on either, and which one it is
// comes out when it starts. All names here are weak: on the real runtime they are null. Ask `stand_in_is_here()` first.
//
// Functions given to cudaLaunchHostFunc stand for kernels, so those of different streams run at the same time. The real
// runtime runs one at a time: seen on an H100 with CUDA 13.0.
//
// The stand-in for NCCL reports what real ranks would not survive: collectives that differ, a rank that does not come,
// a buffer in a pool to which another rank's device has no access, a communicator that two threads use at once, kernels
// of two communicators that nothing orders on a device, and a communicator that is aborted alone while others wait. A
// rank on a poisoned device does not come: the others wait until they are aborted. Communicators that do not block
// start a call at the third look at ncclCommGetAsyncError.
//
// The environment is read at the first call of any function:
//   FANOUT_STAND_IN_DEVICES=N        N devices (2 if unset); 0: a driver without devices; none: no driver
//   FANOUT_STAND_IN_DELAYS=SEED      streams take random breaks
//   FANOUT_STAND_IN_COPY_US=N        each copy takes N microseconds
//   FANOUT_STAND_IN_NO_PEER=0-2,...  pairs of devices that cannot access each other
//   FANOUT_STAND_IN_CORRUPT=0-1,...  direct copies from 0 to 1 write wrong bytes and report success
//   FANOUT_STAND_IN_ALLOW=KIND,...   what may be left at exit, see stand_in_allow_at_exit
//   FANOUT_STAND_IN_PATIENCE_MS=N    how long a rank of NCCL waits for the others (20000)
//   FANOUT_STAND_IN_PROCESSES=FOLDER ranks of NCCL may be in several processes, which exchange files in the folder
//   FANOUT_STAND_IN_NO_REMOTE_ERRORS=1  a rank of NCCL does not notice that another process has aborted
// CUDA_VISIBLE_DEVICES chooses among the devices as with the real one (numbers only).
#pragma once

#include <stddef.h>

#define FANOUT_STAND_IN_CALL __attribute__((weak, visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// ---- devices. Numbers are those of cudaSetDevice. To be set before the device is used.
FANOUT_STAND_IN_CALL void stand_in_set_devices(int count);
FANOUT_STAND_IN_CALL void stand_in_set_device(int device, const char* name, size_t bytes, int multiprocessors,
                                              int major, int minor);
/// Memory that other processes use, so that less is free.
FANOUT_STAND_IN_CALL void stand_in_set_used_by_others(int device, size_t bytes);
/// Whether the device has memory pools, which some virtual GPUs lack.
FANOUT_STAND_IN_CALL void stand_in_set_memory_pools(int device, int supported);
FANOUT_STAND_IN_CALL void stand_in_set_peer(int one, int other, int able);
FANOUT_STAND_IN_CALL void stand_in_set_corrupting(int from, int to, int corrupting);

/// ---- misuse
/// What was done wrong since the last look, a line each; empty if nothing. What nobody has looked at is printed at
/// exit, and the process ends with 99. The text is valid until this thread asks again.
FANOUT_STAND_IN_CALL const char* stand_in_misuse(void);
/// Up to `count` objects of `kind` may be left when the program ends; -1: any number. Kinds: "streams", "events",
/// "pools", "device memory", "pinned memory" (both in allocations, not bytes), "communicators".
FANOUT_STAND_IN_CALL void stand_in_allow_at_exit(const char* kind, int count);
/// How many of a kind there are now.
FANOUT_STAND_IN_CALL int stand_in_alive(const char* kind);

/// ---- failures
/// The `nth` call from now (1: the next) of `function` (null: of any function) returns `code` and does nothing; only
/// what releases something does that first. `times` calls in a row fail.
FANOUT_STAND_IN_CALL void stand_in_fail(const char* function, int nth, int times, int code);
/// Forgets the failures that have not happened; says how many there were.
FANOUT_STAND_IN_CALL int stand_in_no_failures(void);
/// From now on the device answers with `code`, a sticky error, and runs nothing more. 0: it is well again. May be
/// called in a function given to cudaLaunchHostFunc, and so in order with a stream.
FANOUT_STAND_IN_CALL void stand_in_poison(int device, int code);
/// The same from the `nth` call of any function on.
FANOUT_STAND_IN_CALL void stand_in_poison_at(int nth, int device, int code);
/// All calls return cudaErrorCudartUnloading, as when the program is ending.
FANOUT_STAND_IN_CALL void stand_in_set_unloading(int unloading);

/// ---- what was done
/// Calls of `function` so far (null: of all functions); whether they failed does not matter.
FANOUT_STAND_IN_CALL long stand_in_calls(const char* function);
/// The functions that were called so far, a line each.
FANOUT_STAND_IN_CALL const char* stand_in_functions(void);
/// Bytes in use on a device: by cudaMalloc, and reserved by pools. Of pinned memory: device -1.
FANOUT_STAND_IN_CALL size_t stand_in_bytes_in_use(int device);
/// The NUMA node that the thread preferred when it allocated this pinned memory; -1 if it preferred none.
FANOUT_STAND_IN_CALL int stand_in_node_of(const void* pinned);
/// Copies and bytes copied so far, by kind: "h2d pinned", "h2d pageable", "d2h pinned", "d2h pageable", "d2d",
/// "peer direct", "peer staged", "h2h".
FANOUT_STAND_IN_CALL long stand_in_copies(const char* kind);
FANOUT_STAND_IN_CALL size_t stand_in_copied_bytes(const char* kind);
/// The most copies that were under way at the same time.
FANOUT_STAND_IN_CALL int stand_in_most_copies_at_once(void);
/// Forgets the numbers of calls and of copies.
FANOUT_STAND_IN_CALL void stand_in_forget_counts(void);

/// ---- contexts
/// Whether the primary context of the device is there.
FANOUT_STAND_IN_CALL int stand_in_has_context(int device);
/// How many devices have one.
FANOUT_STAND_IN_CALL int stand_in_contexts(void);
/// This thread's current context as the number of its device, -1 without one; and how many contexts are on its stack.
FANOUT_STAND_IN_CALL int stand_in_current(void);
FANOUT_STAND_IN_CALL int stand_in_depth(void);
/// Empties this thread's stack: it is as a thread that has never used CUDA.
FANOUT_STAND_IN_CALL void stand_in_fresh_thread(void);

/// ---- delays
/// Streams take random breaks from now on. 0: no more.
FANOUT_STAND_IN_CALL void stand_in_set_delays(unsigned seed);
/// Each copy takes so long from now on, whatever its size. Copies in different streams run at the same time.
FANOUT_STAND_IN_CALL void stand_in_set_copy_cost(unsigned microseconds);

#ifdef __cplusplus
}

inline bool stand_in_is_here() { return stand_in_misuse != nullptr; }
#endif
