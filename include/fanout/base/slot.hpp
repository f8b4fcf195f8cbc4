// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <new>

namespace fanout { inline namespace v0 { namespace detail {

/// Storage for at most one object, which is built in place, so it need be neither copyable nor movable. Owns the
/// object.
template <class T>
class Slot {
 public:
  Slot() noexcept {}  // NOLINT(modernize-use-equals-default): that would set the bytes to zero
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() { clear(); }

  /// Builds the object in place from what `make(with...)` returns. Destroys an earlier object first. If `make` throws,
  /// the slot is empty.
  template <class Make, class... With>
  void fill(const Make& make, With&... with) {
    clear();
    ::new (static_cast<void*>(bytes_)) T(make(with...));
    filled_ = true;
  }

  /// Destroys the object if there is one.
  void clear() noexcept {
    if (filled_) value().~T();
    filled_ = false;
  }

  bool filled() const noexcept { return filled_; }

  /// The object. The slot must not be empty.
  T& value() noexcept { return *std::launder(static_cast<T*>(static_cast<void*>(bytes_))); }
  const T& value() const noexcept { return *std::launder(static_cast<const T*>(static_cast<const void*>(bytes_))); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
  bool filled_ = false;
};

}}}  // namespace fanout::v0::detail
