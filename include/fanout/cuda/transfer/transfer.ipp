// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/transfer/transfer.hpp>

#include <cstring>

#include <fanout/cuda/transfer/peer_access.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

void send(DeviceStreams& streams, StreamRef stream, void* to, const void* from, std::size_t bytes) {
  if (pinned_blocks().use(from, bytes, stream)) {
    enqueue_copy(stream, to, from, bytes, cudaMemcpyHostToDevice);
    return pinned_blocks().used(from, bytes, stream);
  }
  for (Run run{0, 0}; run.begin < bytes; run.begin += run.bytes) {
    run = Staging::next_run(run.begin, bytes);
    Staging::Room room = streams.staging().take(stream, run.bytes);
    std::memcpy(room.data(), static_cast<const std::byte*>(from) + run.begin, run.bytes);
    enqueue_copy(stream, static_cast<std::byte*>(to) + run.begin, room.data(), run.bytes, cudaMemcpyHostToDevice);
    room.done();
  }
}

void fetch_by_host(DeviceStreams& to, StreamRef target, void* to_data, DeviceStreams& from, const void* from_data,
                   std::size_t bytes) {
  const StreamRef source = from.compute();
  Staging::Room room;  // declared first, so released after both waits
  Unfinished reading(source);
  Unfinished writing(target);
  for (Run run{0, 0}; run.begin < bytes; run.begin += run.bytes) {
    run = Staging::next_run(run.begin, bytes);
    room = Staging::Room();
    room = to.staging().take(target, run.bytes);
    enqueue_copy(source, room.data(), static_cast<const std::byte*>(from_data) + run.begin, run.bytes,
                 cudaMemcpyDeviceToHost);
    from.let_wait(target, source);
    enqueue_copy(target, static_cast<std::byte*>(to_data) + run.begin, room.data(), run.bytes, cudaMemcpyHostToDevice);
    room.done();
  }
  reading.finished();
  writing.finished();
}

void fetch(DeviceStreams& to, StreamRef target, void* to_data, DeviceStreams& from, const void* from_data,
           std::size_t bytes) {
  const StreamRef source = from.compute();
  if (!peer_trusted(source.device(), target.device())) {
    return fetch_by_host(to, target, to_data, from, from_data, bytes);
  }
  if (!from.is_shared()) from.let_wait(target, source);
  enqueue_peer_copy(target, to_data, target.device(), from_data, source.device(), bytes);
  if (from.is_shared()) {
    peer_reads_of(from.gpu()).add(from_data, bytes, target);
  } else {
    to.let_wait(source, target);
  }
}

bool push(DeviceStreams& to, void* to_data, DeviceStreams& from, const void* from_data, std::size_t bytes) {
  const StreamRef source = from.compute();
  const StreamRef target = to.compute();
  if (!peer_trusted(source.device(), target.device())) {
    exchange(to, to_data, from, from_data, bytes, fetch_by_host);
    return false;
  }
  await_peer_reads(to.gpu(), source, to_data, bytes);
  if (!to.is_shared()) to.let_wait(source, target);
  enqueue_peer_copy(source, to_data, target.device(), from_data, source.device(), bytes);
  if (!to.is_shared()) from.let_wait(target, source);
  return to.is_shared();
}

}}}  // namespace fanout::v0::cuda::detail
