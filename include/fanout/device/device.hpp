// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 {

/// Something that runs work in order and owns or shares memory. A device is a small value: copies are the same device.
///
/// 1. `id()` tells devices apart and never changes; equal devices have equal ids.
/// 2. `memory()` is the memory that work on the device uses; devices that share a memory return equal spaces.
/// 3. `worker()` is the same object for equal devices and lives until the process ends; best from the registry(). A
///    device whose worker has no thread runs its work in the threads of those who call models on it.
/// 4. `enter()` returns a value; from then until that value is destroyed, on the calling thread, work goes to this
///    device. Afterwards the thread is as it was. May be called on any thread, also nested.
/// 5. `synchronize()` waits until the work is done that the calling thread gave the device since enter(), and throws if
///    it failed.
/// 6. `D::visible()` lists the devices of this kind that the process may use, best kept in a fixed order; it may be
///    empty.
/// 7. A device whose memory is not the host's says `static constexpr bool has_own_memory = true`, and its memory has
///    `transfer`: then arguments and models on the host are copied there, and results come from there.
/// 8. A device that gives its work to a stream may have `stream()`; it is what `ctx.stream()` is. And `completion()`: a
///    Completion of what the calling thread gave the device since enter(). Then the thread that runs a shard goes on to
///    the next, and whoever takes the result waits.
///
/// Costs: 1 to 4 take no lock and allocate nothing.
template <class D>
concept Device = std::copyable<D> && std::equality_comparable<D> && requires(const D& device) {
  { device.id() } -> std::convertible_to<DeviceId>;
  { device.memory() } -> std::convertible_to<backend::Memory>;
  { device.worker() } -> std::same_as<backend::Worker&>;
  { device.enter() } -> std::destructible;
  device.synchronize();
  { D::visible() } -> std::convertible_to<std::vector<D>>;
};

/// A device that has a memory of its own.
template <class D>
concept HasOwnMemory = Device<D> && requires {
  requires D::has_own_memory;
};

}}  // namespace fanout::v0
