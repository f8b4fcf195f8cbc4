// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/device_streams.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

DeviceStreams::DeviceStreams(GpuState& gpu, int instance, const NumaNode& node, DeviceStreams* next)
    : gpu_(gpu),
      id_{.kind = "cuda", .index = gpu.index(), .instance = instance},
      worker_(backend::registry().worker(id_, node.cores, false)),
      staging_(gpu, node.number),
      parcels_(gpu, node.number),
      next_(next) {}

void DeviceStreams::let_wait(StreamRef later, StreamRef earlier) {
  const fanout::detail::ForkSafeLock linking(linking_);
  Event& event = earlier == compute() ? computed_ : copied_;
  earlier.record(event);
  later.wait(event);
}

void DeviceStreams::synchronize() {
  gpu_.require();
  // Compute work waits for the copies, so in this order no stream is waited for twice.
  for (fanout::detail::Atomic<cudaStream_t>* stream : {&copies_, &compute_}) {
    if (cudaStream_t handle = stream->load(fanout::detail::MemoryOrder::acquire))
      StreamRef(handle, gpu_.index()).synchronize();
  }
}

backend::Completion DeviceStreams::completion() {
  const bool is_innermost = innermost_streams != nullptr && &innermost_streams->streams() == this;
  return completions_.of(compute(), is_innermost ? innermost_streams->hand_over_parcel() : nullptr);
}

StreamRef DeviceStreams::made(fanout::detail::Atomic<cudaStream_t>& stream) {
  cudaStream_t handle = stream.load(fanout::detail::MemoryOrder::acquire);
  if (handle == nullptr) [[unlikely]] {
    const fanout::detail::ForkSafeLock making(making_);
    handle = stream.load(fanout::detail::MemoryOrder::acquire);
    if (handle == nullptr) {
      handle = Stream(gpu_.index()).release();
      stream.store(handle, fanout::detail::MemoryOrder::release);
    }
  }
  return {handle, gpu_.index()};
}

DeviceStreams& streams_of(GpuState& gpu, int instance) {
  const auto find = [&]() -> DeviceStreams* {
    DeviceStreams* streams = gpu.all_streams().load(fanout::detail::MemoryOrder::acquire);
    while (streams != nullptr && streams->id().instance != instance) streams = streams->next();
    return streams;
  };
  if (DeviceStreams* known = find()) return *known;
  const fanout::detail::ForkSafeLock making(gpu.making());
  if (DeviceStreams* known = find()) return *known;
  auto* made =
      new DeviceStreams(gpu, instance, node_of_gpu(gpu), gpu.all_streams().load(fanout::detail::MemoryOrder::relaxed));
  gpu.all_streams().store(made, fanout::detail::MemoryOrder::release);
  return *made;
}

void trim_parcels(GpuState& gpu) noexcept {
  for (DeviceStreams* streams = gpu.all_streams().load(fanout::detail::MemoryOrder::acquire); streams != nullptr;
       streams = streams->next()) {
    streams->parcels().trim();
  }
}

bool has_several_devices() noexcept {
  int devices = 0;
  for (int i = 0; i < count_gpus().count; ++i) {
    GpuState* const gpu = gpus[i].gpu.load(fanout::detail::MemoryOrder::acquire);
    if (gpu == nullptr) continue;
    for (const DeviceStreams* streams = gpu->all_streams().load(fanout::detail::MemoryOrder::acquire);
         streams != nullptr; streams = streams->next()) {
      devices += streams->id().instance >= 0 ? 1 : 0;
    }
  }
  return devices > 1;
}

EnteredStreams::EnteredStreams(DeviceStreams& streams)
    : streams_(streams), outer_(innermost_streams), before_(thread_context) {
  streams.gpu().require();
  if (before_.held == nullptr) {
    push_context(streams.gpu());
  } else if (before_.current != &streams.gpu()) {
    before_.held->enter(streams.gpu());
  }
  thread_context = {.current = &streams.gpu()};
  innermost_streams = this;
  if (fanout::detail::this_worker != nullptr) ignore_captures_of_others(streams.gpu().index());
  streams.more_work_comes();
}

EnteredStreams::~EnteredStreams() {
  // A shard without a completion has waited for its device.
  if (parcel_ != nullptr) parcel_->release();
  innermost_streams = outer_;
  thread_context = before_;
  if (before_.held == nullptr) {
    pop_context(streams_.gpu());
  } else {
    thread_context.current = nullptr;  // the user's code may have set another device
  }
}

DeviceStreams& current_streams(GpuState& gpu) {
  for (const EnteredStreams* entered = innermost_streams; entered != nullptr; entered = entered->outer()) {
    if (&entered->streams().gpu() == &gpu) return entered->streams();
  }
  return streams_of(gpu, DeviceStreams::shared);
}

}}}  // namespace fanout::v0::cuda::detail
