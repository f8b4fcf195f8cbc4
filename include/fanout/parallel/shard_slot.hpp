// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>

#include <fanout/base/slot.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/parallel/late_shard.hpp>

namespace fanout::inline v0 {

/// Where one shard leaves what it returned or threw, and the memory that it asked for. Shares no line of the cache with
/// that of another shard.
template <class R>
class alignas(alignof(R) > 64 ? alignof(R) : 64) ShardSlot {
 public:
  ShardSlot() noexcept {}  // NOLINT(modernize-use-equals-default): that would set the bytes to zero

  /// Builds the value in place from what `make()` returns; one from an earlier run of the shard goes first.
  template <class Make>
  void fill(const Make& make) {
    value_.fill(make);
  }
  const R& value() const noexcept { return value_.value(); }

  Scratch scratch;
  Completion completion;  // after the memory that the work uses, so that it goes before it
  std::exception_ptr failure;
  bool failed_in_forward = false;
  bool released = false;  // what failed is that it waited for a shard that had left
  bool told_late = false;
  Lateness lateness;

 private:
  Slot<R> value_;  // last, so that it goes before the memory that it may stand in
};

template <>
class alignas(64) ShardSlot<void> {
 public:
  template <class Make>
  void fill(const Make& make) {
    make();
  }

  Scratch scratch;
  Completion completion;  // after the memory that the work uses, so that it goes before it
  std::exception_ptr failure;
  bool failed_in_forward = false;
  bool released = false;  // what failed is that it waited for a shard that had left
  bool told_late = false;
  Lateness lateness;
};

}  // namespace fanout::inline v0
