// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/floating_point_modes.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A done flag for each shard of a call, as members of an array of larger objects. Borrows them.
class DoneFlags {
 public:
  DoneFlags() noexcept = default;
  /// `stride` is the size of the objects in bytes.
  DoneFlags(Atomic<bool>& first, std::size_t stride) noexcept : first_(&first), stride_(stride) {}

  explicit operator bool() const noexcept { return first_ != nullptr; }
  Atomic<bool>& operator[](std::size_t i) const noexcept {
    return *reinterpret_cast<Atomic<bool>*>(reinterpret_cast<std::byte*>(first_) + i * stride_);
  }

 private:
  Atomic<bool>* first_ = nullptr;
  std::size_t stride_ = 0;
};

/// Runs the shards of one call: `run(body, i)` runs the i-th one on this thread. Refers to a body of any type, so that
/// all calls of a program share the code that dispatches and joins. It is made on the thread that makes the call, and
/// keeps the floating-point modes of that thread for all shards. `body(i)` must not throw. A body may also have
///
/// - `body.done_flags()`, a flag for each shard, which the device's thread sets before it unlocks the device;
/// - `body.tell_late()`, called if shards have not ended at the deadline. Must not throw.
struct ShardRunner {
  template <class Body>
  explicit ShardRunner(const Body& of) noexcept : body(&of), run(&run_body<Body>) {
    if constexpr (requires { of.done_flags(); }) done_flags = of.done_flags();
    if constexpr (requires { of.tell_late(); }) tell_body_late = &tell_late_body<Body>;
  }

  void tell_late() const noexcept {
    if (tell_body_late != nullptr) tell_body_late(body);
  }

  const void* body;
  Atomic<bool>* (*run)(const void* body, std::size_t shard) noexcept;  ///< returns the shard's done flag, or null
  DoneFlags done_flags;
  void (*tell_body_late)(const void* body) noexcept = nullptr;
  FloatingPointModes modes = FloatingPointModes::current();

 private:
  template <class Body>
  static Atomic<bool>* run_body(const void* untyped, std::size_t shard) noexcept {
    const Body& typed = *static_cast<const Body*>(untyped);
    typed(shard);
    if constexpr (requires { typed.done_flags(); }) return &typed.done_flags()[shard];
    return nullptr;
  }
  template <class Body>
  static void tell_late_body(const void* untyped) noexcept {
    static_cast<const Body*>(untyped)->tell_late();
  }
};

}}}  // namespace fanout::v0::detail
