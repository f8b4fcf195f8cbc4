// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/transfer.hpp>

#include <cstddef>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer_log.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

void refuse_transfer(const MemorySpace& to, const MemorySpace& from) {
  throw DeviceMismatch(explain({.what = Text() << two_devices(to, from) << ", and no transfer is known between them",
                                .expected = to_string(to),
                                .found = to_string(from),
                                .advice = "define MemoryOperations::transfer for the kind of device that owns the "
                                          "memory"}));
}

const backend::MemoryOperations* joint_operations(const backend::Memory& to, const MemorySpace& from) noexcept {
  const bool is_near = from == host_memory || to.space == host_memory || from.owner.kind == to.space.owner.kind;
  if (!is_near) return nullptr;
  const backend::MemoryOperations* const by = to.space == host_memory ? find_memory(from.owner.kind) : to.operations;
  return by != nullptr && by->transfer_all != nullptr ? by : nullptr;
}

}  // namespace detail

namespace backend {

void declare_memory(DeviceKind kind, const MemoryOperations& operations) {
  if (detail::find_memory(kind) != nullptr) return;
  auto* declared =
      new detail::KnownMemory{kind, &operations, detail::known_memories.load(detail::MemoryOrder::acquire)};
  while (!detail::known_memories.compare_exchange_strong(declared->next, declared, detail::MemoryOrder::acq_rel)) {
  }
}

void transfer(const Memory& to, void* to_data, const MemorySpace& from, const void* from_data, std::size_t bytes) {
  if (bytes == 0) return;
  if (to.space == from) return to.operations->copy(from, to_data, from_data, bytes);
  if (!can_transfer(to, from)) detail::refuse_transfer(to.space, from);
  detail::log_transfer(to.space, from, bytes);
  if (!(to.space == host_memory) && (from == host_memory || from.owner.kind == to.space.owner.kind)) {
    return to.operations->transfer(to.space, to_data, from, from_data, bytes);
  }
  const Memory source = memory_of(from);
  if (to.space == host_memory) return source.operations->transfer(to.space, to_data, from, from_data, bytes);
  const detail::Storage stop(Memory{}, bytes);
  source.operations->transfer(host_memory, stop.data(), from, from_data, bytes);
  to.operations->transfer(to.space, to_data, host_memory, stop.data(), bytes);
}

void transfer_all(const Memory& to, Transfer* transfers, std::size_t count) {
  while (count != 0) {
    const MemoryOperations* const by = detail::joint_operations(to, transfers[0].from);
    std::size_t same = 1;
    if (by == nullptr) {
      transfer(to, transfers[0].to_data, transfers[0].from, transfers[0].from_data, transfers[0].bytes);
    } else {
      for (std::size_t i = 1; i < count; ++i) {
        if (detail::joint_operations(to, transfers[i].from) == by) std::swap(transfers[same++], transfers[i]);
      }
      for (std::size_t i = 0; i < same; ++i) {
        if (!(transfers[i].from == to.space)) detail::log_transfer(to.space, transfers[i].from, transfers[i].bytes);
      }
      by->transfer_all(to.space, transfers, same);
    }
    transfers += same;
    count -= same;
  }
}

void* transfer_in(const Memory& to, const MemorySpace& from, const void* from_data, std::size_t bytes) {
  const MemoryOperations& operations = *to.operations->fresh;
  const bool is_near = from == host_memory || (from.owner.kind == to.space.owner.kind && !(from == to.space));
  if (is_near && operations.transfer_in != nullptr) {
    detail::log_transfer(to.space, from, bytes);
    return operations.transfer_in(to.space, from, from_data, bytes);
  }
  void* const data = operations.allocate(to.space, bytes);
  try {
    transfer({to.space, &operations}, data, from, from_data, bytes);
  } catch (...) {
    operations.release(to.space, data, bytes, nullptr);
    throw;
  }
  return data;
}

}  // namespace backend

}}  // namespace fanout::v0
