// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools, and memory that is allocated and freed in the order of a stream. What a pool counts changes when a call is
// made, not when the stream gets there, so that it is the same in every run; the bytes live as long as the stream needs
// them.
#include <algorithm>

#include "call.hpp"

namespace stand_in {

void note_synchronized(const Point& point) { state().synchronized.merge(point.clock); }

// The driver looks whether a free has happened when the host waits for something behind it. It gives back no other
// memory, however long ago that was.
void trim(Pool& pool, std::size_t keep) {
  std::erase_if(pool.freed,
                [](const Pool::Freed& freed) { return state().synchronized.covers(freed.stream, freed.position); });
  std::size_t busy = pool.used;
  for (const Pool::Freed& freed : pool.freed) busy += freed.bytes;
  pool.reserved = std::max(pool.used, std::min(pool.reserved, std::max(keep, busy)));
}

namespace {

constexpr std::size_t granularity = std::size_t{32} << 20;  // as seen on an H100

PoolPtr add_pool(int device) {
  auto pool = std::make_shared<Pool>();
  pool->device = device;
  pool->access.insert(device);
  state().pools.emplace(state().next_id++, pool);
  return pool;
}

cudaMemPool_t handle_of_pool(const PoolPtr& wanted) {
  for (const auto& [id, pool] : state().pools) {
    if (pool == wanted) return handle_of<cudaMemPool_t>(id);
  }
  return nullptr;
}

PoolPtr find_pool(Call& entry, cudaMemPool_t handle) {
  const auto found = state().pools.find(id_of(handle));
  if (found != state().pools.end() && !found->second->destroyed) return found->second;
  entry.wrong("no pool has the handle " + text(handle) + ": it was destroyed, or is none");
  return nullptr;
}

const PoolPtr& default_pool(int device) {
  auto& pool = device_at(device).default_pool;
  if (!pool) pool = add_pool(device);
  return pool;
}

const PoolPtr& current_pool(int device) {
  auto& pool = device_at(device).current_pool;
  return pool ? pool : default_pool(device);
}

/// A destroyed pool goes when the last of its memory has come back.
void forget_if_empty(const PoolPtr& pool) {
  if (!pool->destroyed || pool->used > 0) return;
  std::erase_if(state().pools, [&](const auto& entry) { return entry.second == pool; });
}

bool reserve(Pool& pool, std::size_t bytes) {
  const std::size_t wanted = pool.used + bytes;
  if (pool.limit != 0 && wanted > pool.limit) return false;
  if (wanted > pool.reserved) {
    const auto& device = device_at(pool.device);
    const std::size_t rounded = (wanted - pool.reserved + granularity - 1) / granularity * granularity;
    std::size_t more = fits(device, rounded) ? rounded : wanted - pool.reserved;
    if (!fits(device, more)) return false;
    pool.reserved += more;
  }
  pool.used = wanted;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return true;
}

/// The driver may give a stream memory that another one has freed and still uses. Then the stream waits for the other.
void wait_for_reuse(const Pool& pool, const StreamPtr& stream, std::size_t bytes) {
  if (!pool.reuses_what_is_in_use) return;
  for (const Pool::Freed& freed : pool.freed) {
    const auto other = state().streams.find(freed.stream);
    if (freed.stream == stream->id || freed.bytes < bytes || other == state().streams.end()) continue;
    if (!idle(*other->second)) push_wait(stream, push_point(other->second));
    return;
  }
}

cudaError_t allocate(Call& entry, void** out, std::size_t bytes, const PoolPtr& pool, const StreamPtr& stream) {
  if (out == nullptr || bytes == 0) return cudaErrorInvalidValue;
  entry.on(stream->device);
  if (!reserve(*pool, bytes)) return cudaErrorMemoryAllocation;
  const auto block = std::make_shared<Block>(Kind::device, pool->device, bytes);
  if (block->data == nullptr) {
    pool->used -= bytes;
    return cudaErrorMemoryAllocation;
  }
  wait_for_reuse(*pool, stream, bytes);
  block->pool = pool;
  block->made_in = stream->id;
  block->made_at = next_position(stream);
  state().blocks.emplace(reinterpret_cast<std::uintptr_t>(block->data), block);
  *out = block->data;
  return cudaSuccess;
}

std::size_t* number_of(Pool& pool, cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolAttrReservedMemCurrent:
      return &pool.reserved;
    case cudaMemPoolAttrReservedMemHigh:
      return &pool.reserved_high;
    case cudaMemPoolAttrUsedMemCurrent:
      return &pool.used;
    case cudaMemPoolAttrUsedMemHigh:
      return &pool.used_high;
    default:
      return nullptr;
  }
}

bool has_pools(int device) { return device_at(device).pools_supported; }

bool is_reuse(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolReuseFollowEventDependencies || attribute == cudaMemPoolReuseAllowOpportunistic ||
         attribute == cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t handle) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!has_pools(stream->device)) return cudaErrorNotSupported;
    return allocate(entry, pointer, bytes, current_pool(stream->device), stream);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool_handle, cudaStream_t handle) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    const auto pool = find_pool(entry, pool_handle);
    if (!stream || !pool) return cudaErrorInvalidResourceHandle;
    return allocate(entry, pointer, bytes, pool, stream);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  return call(__func__, context | releasing, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (pointer == nullptr) return cudaSuccess;
    entry.on(stream->device);
    const auto block = find_block(pointer);
    if (!block || block->data != pointer || !block->pool) {
      entry.wrong(text(pointer) + " is not from a pool: it was freed already, or is something else");
      return cudaErrorInvalidValue;
    }
    const auto position = push(stream, [block] { spoil(*block); });
    note_use(entry.name, block, *stream, position);
    check_unused(entry.name, *block, stream->clock);
    block->pool->used -= block->bytes;
    block->pool->freed.push_back({stream->id, position, block->bytes});
    forget_if_empty(block->pool);
    state().blocks.erase(reinterpret_cast<std::uintptr_t>(block->data));
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps* wanted) {
  return call(__func__, devices, [&](Call&) {
    if (out == nullptr || wanted == nullptr || wanted->allocType != cudaMemAllocationTypePinned ||
        wanted->location.type != cudaMemLocationTypeDevice || wanted->location.id < 0 ||
        wanted->location.id >= state().count) {
      return cudaErrorInvalidValue;
    }
    if (!has_pools(wanted->location.id)) return cudaErrorNotSupported;
    const auto pool = add_pool(wanted->location.id);
    pool->limit = wanted->maxSize;
    *out = handle_of_pool(pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  return call(__func__, devices | releasing, [&](Call& entry) {
    const auto pool = find_pool(entry, handle);
    if (!pool) return cudaErrorInvalidValue;
    auto& device = device_at(pool->device);
    if (pool == device.default_pool) {
      entry.wrong("a default pool cannot be destroyed");
      return cudaErrorInvalidValue;
    }
    if (device.current_pool == pool) device.current_pool.reset();
    pool->destroyed = true;
    forget_if_empty(pool);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int device) {
  return call(__func__, devices, [&](Call&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (device < 0 || device >= state().count) return cudaErrorInvalidDevice;
    if (!has_pools(device)) return cudaErrorNotSupported;
    *out = handle_of_pool(default_pool(device));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int device) {
  return call(__func__, devices, [&](Call&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (device < 0 || device >= state().count) return cudaErrorInvalidDevice;
    if (!has_pools(device)) return cudaErrorNotSupported;
    *out = handle_of_pool(current_pool(device));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t handle) {
  return call(__func__, devices, [&](Call& entry) {
    if (device < 0 || device >= state().count) return cudaErrorInvalidDevice;
    const auto pool = find_pool(entry, handle);
    if (!pool || pool->device != device) return cudaErrorInvalidValue;
    device_at(device).current_pool = pool;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t keep) {
  return call(__func__, devices, [&](Call& entry) {
    const auto pool = find_pool(entry, handle);
    if (!pool) return cudaErrorInvalidValue;
    trim(*pool, keep);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call(__func__, devices, [&](Call& entry) {
    const auto pool = find_pool(entry, handle);
    if (!pool || value == nullptr) return cudaErrorInvalidValue;
    if (attribute == cudaMemPoolReuseAllowInternalDependencies) {
      pool->reuses_what_is_in_use = *static_cast<const int*>(value) != 0;
    }
    if (is_reuse(attribute)) return cudaSuccess;
    const auto number = *static_cast<const std::uint64_t*>(value);
    if (attribute == cudaMemPoolAttrReleaseThreshold) {
      pool->threshold = number;
      return cudaSuccess;
    }
    // A high-water mark can only be set back.
    if (number != 0) return cudaErrorInvalidValue;
    if (attribute == cudaMemPoolAttrReservedMemHigh) {
      pool->reserved_high = pool->reserved;
    } else if (attribute == cudaMemPoolAttrUsedMemHigh) {
      pool->used_high = pool->used;
    } else {
      return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call(__func__, devices, [&](Call& entry) {
    const auto pool = find_pool(entry, handle);
    if (!pool || value == nullptr) return cudaErrorInvalidValue;
    if (is_reuse(attribute)) {
      const bool off = attribute == cudaMemPoolReuseAllowInternalDependencies && !pool->reuses_what_is_in_use;
      *static_cast<int*>(value) = off ? 0 : 1;
    } else if (attribute == cudaMemPoolAttrReleaseThreshold) {
      *static_cast<std::uint64_t*>(value) = pool->threshold;
    } else if (const std::size_t* const number = number_of(*pool, attribute)) {
      *static_cast<std::uint64_t*>(value) = *number;
    } else {
      return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* list, size_t count) {
  return call(__func__, devices, [&](Call& entry) {
    const auto pool = find_pool(entry, handle);
    if (!pool || (list == nullptr && count > 0)) return cudaErrorInvalidValue;
    for (std::size_t i = 0; i < count; ++i) {
      const int other = list[i].location.id;
      if (list[i].location.type != cudaMemLocationTypeDevice || other < 0 || other >= state().count) {
        return cudaErrorInvalidDevice;
      }
      const bool able = !state().no_peer.contains(std::minmax(pool->device, other));
      if (other != pool->device && !able) return cudaErrorInvalidDevice;
      if (other == pool->device && list[i].flags == cudaMemAccessFlagsProtNone) return cudaErrorInvalidValue;
      if (list[i].flags == cudaMemAccessFlagsProtNone) {
        pool->access.erase(other);
      } else {
        pool->access.insert(other);
      }
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t handle, cudaMemLocation* location) {
  return call(__func__, devices, [&](Call& entry) {
    const auto pool = find_pool(entry, handle);
    if (!pool || flags == nullptr || location == nullptr) return cudaErrorInvalidValue;
    *flags = pool->access.contains(location->id) ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
  });
}

}  // extern "C"
