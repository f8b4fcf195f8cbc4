// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/cuda_memory.hpp>

#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/transfer/peer_access.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

void* allocate_on_gpu(const MemorySpace& space, std::size_t bytes) {
  DeviceStreams& streams = streams_for(space);
  void* data = take_kept_block(streams.gpu(), bytes);
  if (data == nullptr) data = allocate_and_settle(streams, bytes);
  streams.gpu().held_bytes().add(bytes);
  return data;
}

void* allocate_and_settle(DeviceStreams& streams, std::size_t bytes) {
  void* const data = allocate_in(streams.compute(), bytes);
  try {
    settle(streams);
  } catch (...) {
    release_in(streams.compute(), data, bytes);
    throw;
  }
  return data;
}

void* allocate_for_all_on_gpu(const MemorySpace& space, std::size_t bytes) {
  if (!has_several_devices()) return allocate_on_gpu(space, bytes);
  GpuState& gpu = gpu_at(space.owner.index);
  void* data = take_kept_block(gpu, bytes);
  if (data == nullptr) {
    const StreamRef stream = streams_of(gpu, DeviceStreams::allocations).compute();
    data = allocate_in(stream, bytes);
    try {
      stream.synchronize();
    } catch (...) {
      release_in(stream, data, bytes);
      throw;
    }
  }
  gpu.held_bytes().add(bytes);
  return data;
}

void release_on_gpu(const MemorySpace& space, void* data, std::size_t bytes, void*) noexcept {
  GpuState* gpu = gpus[space.owner.index].gpu.load(fanout::detail::MemoryOrder::acquire);
  if (data == nullptr || gpu == nullptr) return;
  gpu->held_bytes().subtract(bytes);
  if (!gpu->usable()) return;
  release_at_last([&] {
    DeviceStreams& streams = current_streams(*gpu);
    const StreamRef stream = streams.compute();
    if (streams.is_shared() && !are_read_by_peers(*gpu, data, bytes)) return keep_block(stream, data, bytes);
    await_peer_reads(*gpu, stream, data, bytes);
    release_in(stream, data, bytes);
  });
}

void copy_on_gpu(const MemorySpace& space, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  DeviceStreams& streams = streams_for(space);
  copy_inside(streams, to, from, bytes);
  settle(streams);
}

void clear_on_gpu(const MemorySpace& space, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  DeviceStreams& streams = streams_for(space);
  const StreamRef compute = streams.compute();
  await_peer_reads(streams.gpu(), compute, data, bytes);
  {
    const OnGpu entered(streams.gpu());
    check(::cudaMemsetAsync(data, 0, bytes, compute.get()), "cudaMemsetAsync", compute.device());
  }
  settle(streams);
}

void transfer_with_gpu(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                       std::size_t bytes) {
  if (bytes == 0) return;
  if (to == from) {
    copy_on_gpu(to, to_data, from_data, bytes);
  } else if (to == host_memory) {
    download(streams_for(from), to_data, from_data, bytes);
  } else {
    DeviceStreams& streams = streams_for(to);
    await_peer_reads(streams.gpu(), streams.copies(), to_data, bytes);
    if (from == host_memory) {
      upload(streams, to_data, from_data, bytes);
    } else {
      exchange(streams, to_data, streams_for(from), from_data, bytes);
    }
    settle(streams);
  }
}

void* transfer_into_gpu(const MemorySpace& to, const MemorySpace& from, const void* from_data, std::size_t bytes) {
  DeviceStreams& streams = streams_for(to);
  void* const data = from == host_memory ? upload_new(streams, from_data, bytes)
                                         : exchange_new(streams, streams_for(from), from_data, bytes);
  try {
    settle(streams);
  } catch (...) {
    release_in(streams.compute(), data, bytes);
    throw;
  }
  streams.gpu().held_bytes().add(bytes);
  return data;
}

Pushes::~Pushes() {
  for (std::size_t i = 0; i < count_; ++i) await_quietly(streams_[i]->compute());
}

void transfer_all_with_gpus(const MemorySpace& to, const backend::Transfer* transfers, std::size_t count) {
  if (to == host_memory) {
    fanout::detail::InlineArray<Download> copies(count, [transfers](std::size_t i) -> Download {
      return {&streams_for(transfers[i].from), transfers[i].to_data, transfers[i].from_data, transfers[i].bytes};
    });
    return Downloads(copies.data(), count).make();
  }
  DeviceStreams& streams = streams_for(to);
  Pushes pushes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const backend::Transfer& transfer = transfers[i];
    if (transfer.bytes == 0) continue;
    if (transfer.from == to) {
      copy_inside(streams, transfer.to_data, transfer.from_data, transfer.bytes);
    } else if (transfer.from == host_memory) {
      await_peer_reads(streams.gpu(), streams.copies(), transfer.to_data, transfer.bytes);
      upload(streams, transfer.to_data, transfer.from_data, transfer.bytes);
    } else {
      DeviceStreams& source = streams_for(transfer.from);
      if (push(streams, transfer.to_data, source, transfer.from_data, transfer.bytes)) pushes.add(source);
    }
  }
  pushes.finish();
  settle(streams);
}

bool can_send_from_gpu(const MemorySpace& to, const MemorySpace& from, const void* data, std::size_t bytes) {
  if (bytes == 0) return true;
  if (!(to == host_memory)) return peer_trusted(streams_for(from).gpu().index(), streams_for(to).gpu().index());
  const Parcel* const parcel = innermost_streams != nullptr ? innermost_streams->taken_parcel() : nullptr;
  return parcel != nullptr && parcel->has(data) && parcel->has_room_to_want();
}

void send_from_gpu(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                   std::size_t bytes) {
  if (bytes == 0) return;
  if (to == host_memory) return innermost_streams->taken_parcel()->want(to_data, from_data, bytes);
  push(streams_for(to), to_data, streams_for(from), from_data, bytes);
}

Parcel* parcel_on(const MemorySpace& space) {
  if (innermost_streams == nullptr || innermost_streams->streams().gpu().index() != space.owner.index) return nullptr;
  return innermost_streams->parcel();
}

Parcel* parcel_of(const MemorySpace& space, const void* array) noexcept {
  GpuState& gpu = *gpus[space.owner.index].gpu.load(fanout::detail::MemoryOrder::acquire);
  for (DeviceStreams* streams = gpu.all_streams().load(fanout::detail::MemoryOrder::acquire); streams != nullptr;
       streams = streams->next()) {
    if (Parcel* const parcel = streams->parcels().find(array)) return parcel;
  }
  return nullptr;
}

void* allocate_scratch_on_gpu(const MemorySpace& space, std::size_t bytes) {
  if (bytes <= Parcel::small) {
    Parcel* const parcel = parcel_on(space);
    if (void* const room = parcel != nullptr ? parcel->add(bytes) : nullptr) return room;
  }
  return allocate_on_gpu(space, bytes);
}

void* transfer_into_scratch_on_gpu(const MemorySpace& to, const MemorySpace& from, const void* from_data,
                                   std::size_t bytes) {
  if (bytes <= Parcel::small && from == host_memory) {
    Parcel* const parcel = parcel_on(to);
    if (void* const room = parcel != nullptr ? parcel->add(from_data, bytes) : nullptr) return room;
  }
  return transfer_into_gpu(to, from, from_data, bytes);
}

void release_scratch_on_gpu(const MemorySpace& space, void* data, std::size_t bytes, void*) noexcept {
  Parcel* const parcel = bytes <= Parcel::small ? parcel_of(space, data) : nullptr;
  if (parcel == nullptr) return release_on_gpu(space, data, bytes, nullptr);
  release_at_last([&] {
    GpuState& gpu = *gpus[space.owner.index].gpu.load(fanout::detail::MemoryOrder::acquire);
    await_peer_reads(gpu, parcel->stream(), data, bytes);
    parcel->release();
  });
}

}}}}  // namespace fanout::v0::cuda::detail
