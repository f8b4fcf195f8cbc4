// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <utility>

namespace fanout { inline namespace v0 { namespace backend {

/// Work in flight on a device that a thread can wait for, for example an event of a stream. Empty for a device that
/// works synchronously. Move-only. The destructor waits for the work if nobody has, and ignores its errors.
class Completion {
 public:
  /// Nothing to wait for.
  Completion() noexcept = default;

  /// `finish(what)` waits for the work, throws its error if it failed, and releases `what`. It is called once.
  Completion(void (*finish)(void* what), void* what) noexcept : finish_(finish), what_(what) {}

  Completion(Completion&& other) noexcept : finish_(std::exchange(other.finish_, nullptr)), what_(other.what_) {}
  Completion& operator=(Completion&& other) noexcept {
    std::swap(finish_, other.finish_);
    std::swap(what_, other.what_);
    return *this;
  }
  ~Completion() {
    try {
      wait();
    } catch (...) {  // a destructor must not throw
    }
  }

  /// True if there is work to wait for.
  explicit operator bool() const noexcept { return finish_ != nullptr; }

  /// Waits until the work is done. Throws its error if it failed. Afterwards this is empty.
  void wait() {
    if (finish_ != nullptr) std::exchange(finish_, nullptr)(what_);
  }

 private:
  void (*finish_)(void*) = nullptr;
  void* what_ = nullptr;
};

}}}  // namespace fanout::v0::backend
