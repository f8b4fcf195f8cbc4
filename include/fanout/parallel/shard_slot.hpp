// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include <fanout/memory/scratch.hpp>

namespace fanout::inline v0 {

/// Where one shard leaves what it returned or threw, and the memory that it asked for.
template <class R>
class ShardSlot {
 public:
  ShardSlot() noexcept {}  // NOLINT(modernize-use-equals-default): that would set the bytes to zero
  ShardSlot(const ShardSlot&) = delete;
  ShardSlot& operator=(const ShardSlot&) = delete;
  ~ShardSlot() { clear(); }

  /// Builds the value in place from what `make()` returns; one from an earlier run of the shard goes first.
  template <class Make>
  void fill(const Make& make) {
    clear();
    ::new (static_cast<void*>(bytes_)) R(make());
    filled_ = true;
  }
  const R& value() const noexcept { return *std::launder(reinterpret_cast<const R*>(bytes_)); }

  Scratch scratch;
  std::exception_ptr failure;
  bool failed_in_forward = false;

 private:
  void clear() noexcept {
    if (filled_) std::launder(reinterpret_cast<R*>(bytes_))->~R();
    filled_ = false;
  }

  alignas(R) std::byte bytes_[sizeof(R)];
  bool filled_ = false;
};

template <>
class ShardSlot<void> {
 public:
  template <class Make>
  void fill(const Make& make) {
    make();
  }

  Scratch scratch;
  std::exception_ptr failure;
  bool failed_in_forward = false;
};

}  // namespace fanout::inline v0
