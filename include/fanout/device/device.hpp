// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 {

/// A device runs work in order, and owns or shares a memory. It is a small value: copies are the same device.
///
/// 1. `id()` identifies the device and never changes. Equal devices have equal ids.
/// 2. `memory()` is the memory that work on the device uses. Devices that share a memory return equal spaces.
/// 3. `worker()` returns the same object for equal devices. The worker lives until the process ends; registry() makes
///    such workers. If it has no thread, the threads that call models on the device run its work.
/// 4. `enter()` returns a value. Until that value is destroyed, work of the calling thread goes to this device.
///    Afterwards the thread is as it was. May be called on any thread, also nested.
/// 5. `synchronize()` waits for the work that the calling thread gave the device since enter(). Throws if it failed.
/// 6. `D::visible()` lists the devices of this kind that the process may use, best in a fixed order. It may be empty.
/// 7. A device whose memory is not the host's has `static constexpr bool has_own_memory = true`, and its memory has a
///    `transfer`. Arguments and models in host memory are then copied to the device, and results are copied back.
/// 8. A device that gives its work to a stream may have two more members. `stream()` is what `ctx.stream()` returns.
///    `completion()` is a Completion of the work that the calling thread gave the device since enter(). The thread that
///    runs a shard then goes on to the next one, and the thread that takes the result waits.
/// 9. A device that changes a state of the thread in enter(), and in operations on its memory, may have a type
///    `thread_hold`. Each call of a model makes one on its thread, by the default constructor. Until that is destroyed,
///    the state may stay changed. Then the thread is as before.
/// 10. A device may have `ran(rows)`. It is called when the `forward` of a shard of so many rows has returned, on the
///    thread of the shard, with the device entered. What it throws counts as an exception of that `forward`.
/// 11. A device with a clock of its own has `time()`, in nanoseconds (std::int64_t), which never goes back. On a thread
///    that has entered the device, it is the end of all that the device was given. On other threads, it is the time of
///    the caller's side. If the device has a `completion()`, each shard leaves one, and waiting for it moves the time
///    of the caller's side. Other devices are timed by the host's clock. If one thread runs the work of several such
///    devices, as the stages of a pipeline, the device has `thread_from(time)` and `wait_until(time)`, too.
/// 12. What `enter()` returns may have `inputs_are_made()`. It is called before `forward`, when all inputs of a shard
///    have been made. Work that the thread gives the device afterwards must find the inputs in the device's memory.
///
/// Cost: 1 to 4 take no lock and allocate nothing.
template <class D>
concept Device = std::copyable<D> && std::equality_comparable<D> && requires(const D& device) {
  { device.id() } -> std::convertible_to<DeviceId>;
  { device.memory() } -> std::convertible_to<backend::Memory>;
  { device.worker() } -> std::same_as<backend::Worker&>;
  { device.enter() } -> std::destructible;
  device.synchronize();
  { D::visible() } -> std::convertible_to<std::vector<D>>;
};

/// A device with a memory of its own.
template <class D>
concept HasOwnMemory = Device<D> && requires {
  requires D::has_own_memory;
};

}}  // namespace fanout::v0
