// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// As <fanout/source.hpp>, for programs that include <fanout/cuda.hpp>: the bodies of the room `cuda`.

#include <fanout/base/requirements.hpp>

#if !defined(FANOUT_SEPARATE_COMPILATION)
#error "fanout: a source.hpp is for programs that define FANOUT_SEPARATE_COMPILATION in all their files"
#endif

#include <fanout/cuda/allocator.ipp>
#include <fanout/cuda/cuda_device.ipp>
#include <fanout/cuda/cuda_memory.ipp>
#include <fanout/cuda/current_device.ipp>
#include <fanout/cuda/device_info.ipp>
#include <fanout/cuda/peer_report.ipp>
#include <fanout/cuda/runtime/availability.ipp>
#include <fanout/cuda/runtime/completions.ipp>
#include <fanout/cuda/runtime/device_guard.ipp>
#include <fanout/cuda/runtime/device_streams.ipp>
#include <fanout/cuda/runtime/driver.ipp>
#include <fanout/cuda/runtime/enqueue_copy.ipp>
#include <fanout/cuda/runtime/event.ipp>
#include <fanout/cuda/runtime/gpu_index.ipp>
#include <fanout/cuda/runtime/gpu_state.ipp>
#include <fanout/cuda/runtime/memory_pool.ipp>
#include <fanout/cuda/runtime/numa_node.ipp>
#include <fanout/cuda/runtime/page_locked.ipp>
#include <fanout/cuda/runtime/parcel.ipp>
#include <fanout/cuda/runtime/preferred_node.ipp>
#include <fanout/cuda/runtime/staging.ipp>
#include <fanout/cuda/runtime/status.ipp>
#include <fanout/cuda/runtime/stream.ipp>
#include <fanout/cuda/runtime/thread_context.ipp>
#include <fanout/cuda/transfer/downloads.ipp>
#include <fanout/cuda/transfer/peer_access.ipp>
#include <fanout/cuda/transfer/peer_check.ipp>
#include <fanout/cuda/transfer/peer_reads.ipp>
#include <fanout/cuda/transfer/pinned.ipp>
#include <fanout/cuda/transfer/pinned_memory.ipp>
#include <fanout/cuda/transfer/transfer.ipp>
#include <fanout/cuda/visible/gpus_on_bus.ipp>
#include <fanout/cuda/visible/imbalance.ipp>
#include <fanout/cuda/visible/visible_devices.ipp>
#include <fanout/cuda/visible/visible_devices_report.ipp>
#include <fanout/cuda/visible/visible_token.ipp>
