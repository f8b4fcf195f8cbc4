// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The bodies of all functions that are no templates, for one file of a program whose files are compiled with
// FANOUT_SEPARATE_COMPILATION. The CMake target `fanout::compiled` is this file.

#include <fanout/base/requirements.hpp>

#if !defined(FANOUT_SEPARATE_COMPILATION)
#error "fanout: <fanout/source.hpp> is for programs that define FANOUT_SEPARATE_COMPILATION in all their files"
#endif

#include <fanout/array/view.ipp>
#include <fanout/base/device_id.ipp>
#include <fanout/base/error.ipp>
#include <fanout/base/type_info.ipp>
#include <fanout/call/async_calls.ipp>
#include <fanout/call/ranked_call.ipp>
#include <fanout/call/replica_error.ipp>
#include <fanout/call/shard_ends.ipp>
#include <fanout/call/timeout.ipp>
#include <fanout/device/device_set.ipp>
#include <fanout/device/host_device.ipp>
#include <fanout/dispatch/deal.ipp>
#include <fanout/dispatch/shard_tasks.ipp>
#include <fanout/dispatch/shared_copy.ipp>
#include <fanout/gather/gather_target.ipp>
#include <fanout/gather/gather_traits.ipp>
#include <fanout/gather/join_arrays.ipp>
#include <fanout/gather/join_pieces.ipp>
#include <fanout/measure/call_clock.ipp>
#include <fanout/measure/call_totals.ipp>
#include <fanout/measure/measured_calls.ipp>
#include <fanout/memory/copy_bytes.ipp>
#include <fanout/memory/copy_rows.ipp>
#include <fanout/memory/extents.ipp>
#include <fanout/memory/memory_operations.ipp>
#include <fanout/memory/memory_space.ipp>
#include <fanout/memory/output_buffer.ipp>
#include <fanout/memory/pool.ipp>
#include <fanout/memory/scratch.ipp>
#include <fanout/memory/transfer.ipp>
#include <fanout/parallel/checked_options.ipp>
#include <fanout/parallel/model_state.ipp>
#include <fanout/plan/row_range.ipp>
#include <fanout/recovery/device_health.ipp>
#include <fanout/recovery/memory_limits.ipp>
#include <fanout/scatter/axis.ipp>
#include <fanout/scatter/batch_rows.ipp>
#include <fanout/scatter/scatter_traits.ipp>
#include <fanout/sync/fork_safe_mutex.ipp>
#include <fanout/sync/shared_mutex.ipp>
#include <fanout/sync/ticks.ipp>
#include <fanout/tree/leaf_path.ipp>
#include <fanout/waiting/arrival_predictor.ipp>
#include <fanout/worker/cores.ipp>
#include <fanout/worker/handoff_slot.ipp>
#include <fanout/worker/linux_threads.ipp>
#include <fanout/worker/registry.ipp>
#include <fanout/worker/task.ipp>
#include <fanout/worker/task_queue.ipp>
#include <fanout/worker/thread.ipp>
#include <fanout/worker/worker.ipp>
