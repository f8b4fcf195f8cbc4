// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

/// Owns an object, or none. Whoever makes the object also gives the function that destroys it. So only the files that
/// make the object have the code of its destructor.
template <class T>
class Owned {
 public:
  using Destroy = void(T*) noexcept;

  Owned() noexcept = default;
  /// Takes over the object.
  Owned(T* object, Destroy* by) noexcept : object_(object), destroy_(by) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)), destroy_(other.destroy_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~Owned() {
    if (object_ != nullptr) [[unlikely]]
      destroy();
  }

  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }

 private:
  // Not inlined, here and in the parts of calls: g++ would no longer inline the few instructions of a call without.
  [[gnu::cold, gnu::noinline]] void destroy() noexcept { destroy_(object_); }

  T* object_ = nullptr;
  Destroy* destroy_ = nullptr;
};

}}}  // namespace fanout::v0::detail
