// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "hooks.hpp"

#include <algorithm>

#include "call.hpp"

using namespace stand_in;

namespace {

struct Books {
  Quiet quiet;
  std::lock_guard<std::mutex> lock{state().mutex};
};

StreamPtr stream_of(const char* name, int device, cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return default_stream(device);
  auto stream = find_stream(name, handle);
  if (stream && stream->device != device) {
    misuse(name, "the stream is of " + device_text(stream->device) + ", not of " + device_text(device));
    return nullptr;
  }
  return stream;
}

/// A kernel of the peer would use an invalid address. Devices that cannot reach each other pass memory on otherwise,
/// and for memory that is in no pool, NCCL enables the access.
void check_peers(const char* name, const Block& block, const stand_in_range& range) {
  for (std::size_t i = 0; i < range.peer_count; ++i) {
    const int peer = range.peers[i];
    if (peer == block.device || !block.pool || block.pool->access.contains(peer)) continue;
    if (state().no_peer.contains(std::minmax(peer, block.device))) continue;
    misuse(name, text(range.pointer) + " is of a pool of " + device_text(block.device) + ", to which " +
                     device_text(peer) + " has no access");
  }
}

void check_order(const char* name, const void* communicator, const Stream& stream) {
  const Collective& last = device_at(stream.device).collective;
  if (last.communicator == nullptr || last.communicator == communicator || last.stream == stream.id) return;
  if (stream.clock.covers(last.stream, last.position) || state().host.covers(last.stream, last.position)) return;
  misuse(name, "nothing orders it after the kernel of another communicator on " + device_text(stream.device));
}

}  // namespace

extern "C" {

int stand_in_enter(const char* function) {
  return call(function, devices | driver, [](Call&) { return cudaSuccess; });
}

void stand_in_report(const char* name, const char* what) {
  const Books books;
  misuse(name, what);
}

void stand_in_add_alive(const char* kind, int change) {
  const Books books;
  state().others_alive[kind] += change;
}

int stand_in_launch(const char* name, const void* communicator, int device, cudaStream_t handle,
                    const stand_in_range* ranges, std::size_t count, void (*function)(void*), void (*release)(void*),
                    void* data) {
  const Books books;
  const auto stream = stream_of(name, device, handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (const int poison = device_at(device).poison; poison != 0) return poison;
  std::vector<BlockPtr> used;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [pointer, bytes, peers, peer_count] = ranges[i];
    if (bytes == 0) continue;
    const auto block = find_block(pointer);
    if (!block || block->kind != Kind::device || block->device != device) {
      misuse(name, text(pointer) + " is not in the memory of " + device_text(device));
      return cudaErrorInvalidValue;
    }
    if (static_cast<std::size_t>(static_cast<const char*>(pointer) - block->data) + bytes > block->bytes) {
      misuse(name, std::to_string(bytes) + " bytes from " + text(pointer) + " go beyond the end of their allocation");
      return cudaErrorInvalidValue;
    }
    check_peers(name, *block, ranges[i]);
    used.push_back(block);
  }
  check_order(name, communicator, *stream);
  const std::shared_ptr<void> owned(data, release);
  const auto position = push(
      stream, [function, owned, used] { function(owned.get()); }, Work::host_function);
  for (const auto& block : used) note_use(name, block, *stream, position);
  device_at(device).collective = {communicator, stream->id, position};
  return cudaSuccess;
}

}  // extern "C"
