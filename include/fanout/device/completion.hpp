// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

#include <fanout/base/exchange.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// Work that a device was given and that may still go on, for one to wait for: an event of a stream, say. Empty for
/// devices whose work is done when it is given. Move-only; what is not waited for is when this goes.
class Completion {
 public:
  /// Nothing to wait for.
  Completion() noexcept = default;

  /// `finish(what)` waits, throws what failed of the work, and lets go of `what`; it is called once.
  Completion(void (*finish)(void* what), void* what) noexcept : finish_(finish), what_(what) {}

  Completion(Completion&& other) noexcept : finish_(detail::exchange(other.finish_, nullptr)), what_(other.what_) {}
  Completion& operator=(Completion&& other) noexcept {
    detail::swap(finish_, other.finish_);
    detail::swap(what_, other.what_);
    return *this;
  }
  ~Completion() {
    try {
      wait();
    } catch (...) {  // nobody wanted to know
    }
  }

  explicit operator bool() const noexcept { return finish_ != nullptr; }

  /// Returns when the work is done; throws what failed of it. Afterwards this is empty.
  void wait() {
    if (finish_ != nullptr) detail::exchange(finish_, nullptr)(what_);
  }

 private:
  void (*finish_)(void*) = nullptr;
  void* what_ = nullptr;
};

}}}  // namespace fanout::v0::backend
