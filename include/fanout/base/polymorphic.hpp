// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

/// Owns an object of a class derived from Interface, by value, or none. A copy is a copy of the object: Interface has
/// `Interface* copy() const`, and a virtual destructor. Allocates when it is made or copied.
template <class Interface>
class Polymorphic {
 public:
  Polymorphic() noexcept = default;
  /// Takes over the object.
  explicit Polymorphic(Interface* object) noexcept : object_(object) {}

  // Not movable: a moved-from object could not be used any more.
  Polymorphic(const Polymorphic& other) : object_(other ? other.object_->copy() : nullptr) {}
  Polymorphic& operator=(const Polymorphic& other) {  // by value, the copy would be made where nothing may throw
    if (this == &other) return *this;
    Polymorphic copy(other);
    std::swap(object_, copy.object_);
    return *this;
  }
  ~Polymorphic() { delete object_; }

  explicit operator bool() const noexcept { return object_ != nullptr; }
  Interface* get() const noexcept { return object_; }
  Interface* operator->() const noexcept { return object_; }

 private:
  Interface* object_ = nullptr;
};

}}}  // namespace fanout::v0::detail
