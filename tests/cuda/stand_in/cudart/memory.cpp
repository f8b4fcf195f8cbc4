// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of devices and pinned memory, both on the host.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call.hpp"

namespace stand_in {

// Bytes that no test would take for a result.
inline constexpr int fresh = 0xfb, gone = 0xfd;

namespace {

/// Of large memory both ends, since tests have more to do than this.
void write(char* data, std::size_t bytes, int value) {
  constexpr std::size_t end = 64 << 10;
  std::memset(data, value, std::min(bytes, end));
  if (bytes > end) std::memset(data + std::max(end, bytes - end), value, std::min(bytes - end, end));
}

}  // namespace

Block::Block(Kind of, int on, std::size_t size) : kind(of), device(on), bytes(size) {
  void* made = nullptr;
  if (posix_memalign(&made, 512, size) == 0) data = static_cast<char*>(made);
  if (data != nullptr) write(data, size, fresh);
}

Block::~Block() { std::free(data); }

void spoil(const Block& block) { write(block.data, block.bytes, gone); }

BlockPtr find_block(const void* pointer) {
  const auto& blocks = state().blocks;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto found = blocks.upper_bound(address);
  if (found == blocks.begin()) return nullptr;
  --found;
  return address - found->first < found->second->bytes ? found->second : nullptr;
}

std::size_t bytes_in_use(int device) {
  const auto& all = state();
  std::size_t result = device < 0 ? 0 : device_at(device).allocated;
  for (const auto& [id, pool] : all.pools) {
    if (pool->device == device) result += pool->reserved;
  }
  if (device < 0) {
    for (const auto& [address, block] : all.blocks) {
      if (block->kind == Kind::pinned) result += block->bytes;
    }
  }
  return result;
}

bool fits(const Device& device, std::size_t bytes) {
  const auto number = static_cast<int>(&device - state().devices.data());
  const std::size_t taken = bytes_in_use(number) + device.others;
  return taken <= device.total && bytes <= device.total - taken;
}

void note_use(const char* call, const BlockPtr& block, const Stream& stream, std::uint64_t position) {
  if (block->made_in != 0 && !stream.clock.covers(block->made_in, block->made_at)) {
    misuse(call, text(block->data) + " was allocated in another stream, and nothing orders this use after that");
  }
  block->uses[stream.id] = position;
}

bool poisoned(const Stream& stream) { return device_at(stream.device).poison != 0; }

void check_unused(const char* call, const Block& block, const Clock& clock) {
  for (const auto& [stream, position] : block.uses) {
    const auto found = state().streams.find(stream);
    if (found != state().streams.end() && poisoned(*found->second)) continue;  // it runs nothing more
    if (!clock.covers(stream, position)) {
      misuse(call, text(block.data) + " is freed, and nothing orders that after its last use in another stream");
      return;
    }
  }
}

namespace {

/// The NUMA node that this thread takes new pages from if it can; -1: no special one.
int preferred_node() {
  int policy = MPOL_DEFAULT;
  unsigned long nodes[16] = {};
  if (::syscall(SYS_get_mempolicy, &policy, nodes, 8 * sizeof nodes + 1, nullptr, 0UL) != 0) return -1;
  if (policy != MPOL_PREFERRED) return -1;
  int node = 0;
  for (const unsigned long word : nodes) {
    if (word != 0) return node + __builtin_ctzl(word);
    node += static_cast<int>(8 * sizeof word);
  }
  return -1;
}

cudaError_t allocate(const char* name, void** out, std::size_t bytes, Kind kind) {
  return call(name, context | unsafe, [&](Call&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (bytes == 0) {
      *out = nullptr;
      return cudaSuccess;
    }
    auto& all = state();
    const int number = current_or_chosen();
    auto& device = device_at(number);
    if (kind == Kind::device && !fits(device, bytes)) return cudaErrorMemoryAllocation;
    const auto block = std::make_shared<Block>(kind, number, bytes);
    if (block->data == nullptr) return cudaErrorMemoryAllocation;
    if (kind == Kind::device) device.allocated += bytes;
    if (kind == Kind::pinned) block->node = preferred_node();
    *out = block->data;
    all.blocks.emplace(reinterpret_cast<std::uintptr_t>(block->data), block);
    return cudaSuccess;
  });
}

cudaError_t release(const char* name, void* pointer, Kind kind) {
  return call(name, context | unsafe | releasing, [&](Call& entry) {
    if (pointer == nullptr) return cudaSuccess;
    auto& all = state();
    const auto block = find_block(pointer);
    if (!block || block->data != pointer || block->kind != kind) {
      entry.wrong(text(pointer) + " is not the start of such memory: it was freed already, or is something else");
      return cudaErrorInvalidValue;
    }
    // The real one waits for the whole device, but nothing that says so orders other streams before it.
    Clock known = all.host;
    const auto& first = device_at(block->device).default_stream;
    if (first) known.set(first->id, first->pushed);
    check_unused(name, *block, known);
    all.blocks.erase(reinterpret_cast<std::uintptr_t>(block->data));
    if (block->pool) {
      block->pool->used -= block->bytes;
    } else if (kind == Kind::device) {
      device_at(block->device).allocated -= block->bytes;
    }
    synchronize_device(entry.lock, block->device);
    entry.lock.unlock();
    {
      const Loud loud;
      spoil(*block);
    }
    entry.lock.lock();
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) { return allocate(__func__, pointer, bytes, Kind::device); }

cudaError_t cudaFree(void* pointer) { return release(__func__, pointer, Kind::device); }

cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return allocate(__func__, pointer, bytes, Kind::pinned); }

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  if ((flags & ~7U) != 0) return cudaErrorInvalidValue;
  return allocate(__func__, pointer, bytes, Kind::pinned);
}

cudaError_t cudaFreeHost(void* pointer) { return release(__func__, pointer, Kind::pinned); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call(__func__, context, [&](Call&) {
    const int number = current_or_chosen();
    const auto& device = device_at(number);
    const std::size_t taken = bytes_in_use(number) + device.others;
    if (total != nullptr) *total = device.total;
    if (free != nullptr) *free = taken < device.total ? device.total - taken : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call(__func__, context, [&](Call&) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    *attributes = {};
    const auto block = find_block(pointer);
    if (!block) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = const_cast<void*>(pointer);
      return cudaSuccess;
    }
    attributes->device = block->device;
    attributes->devicePointer = const_cast<void*>(pointer);
    attributes->type = block->kind == Kind::device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    if (block->kind == Kind::pinned) attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  });
}

}  // extern "C"
