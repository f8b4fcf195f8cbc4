// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies and fills. The bytes are moved by the stream's thread, loudly.
#include <algorithm>
#include <cstring>

#include "call.hpp"

namespace stand_in { namespace {

/// One end of a copy.
struct End {
  const char* data = nullptr;
  BlockPtr block;  ///< null: pageable
  bool usable = true;

  Kind kind() const { return block ? block->kind : Kind::pageable; }
  bool on_device() const { return kind() == Kind::device; }
};

End end_of(Call& entry, const void* pointer, std::size_t bytes) {
  End end{static_cast<const char*>(pointer), find_block(pointer)};
  if (end.block && static_cast<std::size_t>(end.data - end.block->data) + bytes > end.block->bytes) {
    entry.wrong(std::to_string(bytes) + " bytes from " + text(pointer) + " go beyond the end of their allocation");
    end.usable = false;
  }
  if (pointer == nullptr) end.usable = false;
  return end;
}

bool must_be(Call& entry, const End& end, bool device, const char* which) {
  if (end.on_device() == device) return end.usable;
  entry.wrong(std::string("the ") + which + ", " + text(end.data) + ", is not in the memory of " +
              (device ? "a device: it was freed, or is something else" : "the host, as the call says"));
  return false;
}

/// Without a direct way between two devices, the runtime copies through the host.
bool direct(const Block& to, const Block& from) {
  const auto reaches = [](int device, const Block& block) {
    if (block.pool) return block.pool->access.contains(device);
    return device_at(device).peers.contains(block.device);
  };
  return reaches(to.device, from) || reaches(from.device, to);
}

void count(const std::string& kind, std::size_t bytes) {
  auto& copied = state().copied[kind];
  ++copied.copies;
  copied.bytes += bytes;
}

std::string kind_of(const End& to, const End& from) {
  const auto host = [](const End& end) { return end.kind() == Kind::pinned ? " pinned" : " pageable"; };
  if (to.on_device() && !from.on_device()) return std::string("h2d") + host(from);
  if (!to.on_device() && from.on_device()) return std::string("d2h") + host(to);
  if (!to.on_device()) return "h2h";
  if (to.block->device == from.block->device) return "d2d";
  return direct(*to.block, *from.block) ? "peer direct" : "peer staged";
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

enum class Returns { at_once, when_done };

cudaError_t enqueue(Call& entry, const End& to, const End& from, const Copy& copy, const StreamPtr& stream,
                    Returns returns) {
  if (!to.usable || !from.usable) return cudaErrorInvalidValue;
  const std::string kind = kind_of(to, from);
  count(kind, copy.bytes);
  const bool corrupt = kind == "peer direct" && state().corrupting.contains({from.block->device, to.block->device});
  std::function<void()> run;
  if (returns == Returns::at_once && to.on_device() && from.kind() == Kind::pageable) {
    // The real one has read such a source when it returns.
    auto staged = std::make_shared<std::vector<char>>(copy.bytes);
    {
      const Loud loud;
      std::memcpy(staged->data(), copy.from, copy.bytes);
    }
    run = [staged, copy, keep = to.block] { std::memcpy(copy.to, staged->data(), copy.bytes); };
  } else {
    run = [copy, corrupt, keep_to = to.block, keep_from = from.block] {
      std::memmove(copy.to, copy.from, copy.bytes);
      if (!corrupt) return;
      auto* const bytes = static_cast<unsigned char*>(copy.to);
      for (std::size_t i = 0; i < copy.bytes; i += 64) bytes[i] ^= 0x5a;
    };
  }
  const auto position = push(stream, std::move(run), Work::copy);
  for (const End* end : {&to, &from}) {
    if (end->block) note_use(entry.name, end->block, *stream, position);
  }
  // The real one returns from a copy to pageable memory when it is there.
  const bool waits = returns == Returns::when_done || (from.on_device() && to.kind() == Kind::pageable);
  if (waits) wait(entry.lock, push_point(stream));
  return cudaSuccess;
}

cudaError_t copy_kind(Call& entry, const Copy& copy, cudaMemcpyKind kind, const StreamPtr& stream, Returns returns) {
  if (copy.bytes == 0) return cudaSuccess;
  entry.on(stream->device);
  const End to = end_of(entry, copy.to, copy.bytes);
  const End from = end_of(entry, copy.from, copy.bytes);
  if (kind != cudaMemcpyDefault) {
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!must_be(entry, to, to_device, "target") || !must_be(entry, from, from_device, "source")) {
      return cudaErrorInvalidValue;
    }
  }
  // Within a device, and between devices, the call that waits does not.
  if (to.on_device() && from.on_device()) returns = Returns::at_once;
  return enqueue(entry, to, from, copy, stream, returns);
}

cudaError_t copy_peer(Call& entry, const Copy& copy, int to_device, int from_device, const StreamPtr& stream,
                      Returns returns) {
  if (std::min(to_device, from_device) < 0 || std::max(to_device, from_device) >= state().count) {
    return cudaErrorInvalidDevice;
  }
  if (copy.bytes == 0) return cudaSuccess;
  entry.on(stream->device);
  const End to = end_of(entry, copy.to, copy.bytes);
  const End from = end_of(entry, copy.from, copy.bytes);
  if (!must_be(entry, to, true, "target") || !must_be(entry, from, true, "source")) return cudaErrorInvalidValue;
  if (to.block->device != to_device || from.block->device != from_device) {
    entry.wrong("from " + device_text(from_device) + " to " + device_text(to_device) + ", but the memory is of " +
                device_text(from.block->device) + " and " + device_text(to.block->device));
    return cudaErrorInvalidValue;
  }
  return enqueue(entry, to, from, copy, stream, returns);
}

cudaError_t fill(Call& entry, void* pointer, int value, std::size_t bytes, const StreamPtr& stream) {
  if (bytes == 0) return cudaSuccess;
  entry.on(stream->device);
  const End to = end_of(entry, pointer, bytes);
  if (!to.block || !to.usable) {
    if (!to.block) must_be(entry, to, true, "target");
    return cudaErrorInvalidValue;
  }
  const auto& able = device_at(stream->device).peers;
  const bool reaches =
      to.block->device == stream->device || !to.on_device() ||
      (to.block->pool ? to.block->pool->access.contains(stream->device) : able.contains(to.block->device));
  if (!reaches) {
    entry.wrong(text(pointer) + " is of " + device_text(to.block->device) + ", which " + device_text(stream->device) +
                " has no access to");
    return cudaErrorInvalidValue;
  }
  const auto position = push(stream, [pointer, value, bytes, keep = to.block] { std::memset(pointer, value, bytes); });
  note_use(entry.name, to.block, *stream, position);
  return cudaSuccess;
}

}}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    return copy_kind(entry, {to, from, bytes}, kind, stream, Returns::at_once);
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call(__func__, context, [&](Call& entry) {
    return copy_kind(entry, {to, from, bytes}, kind, default_stream(current_or_chosen()), Returns::when_done);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t handle) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    return copy_peer(entry, {to, from, bytes}, to_device, from_device, stream, Returns::at_once);
  });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = default_stream(current_or_chosen());
    return copy_peer(entry, {to, from, bytes}, to_device, from_device, stream, Returns::when_done);
  });
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t handle) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    return stream ? fill(entry, pointer, value, bytes, stream) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return call(__func__, context,
              [&](Call& entry) { return fill(entry, pointer, value, bytes, default_stream(current_or_chosen())); });
}

}  // extern "C"
