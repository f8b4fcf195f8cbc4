// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/sync/floating_point_modes.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// An asynchronous call whose result is an R.
template <class R>
class PendingCall : public AsyncCall {
 public:
  PendingCall(const void* original, std::size_t shards) : AsyncCall(shards), original_(original) {}
  ~PendingCall() override = default;

  /// The original of the model that is called.
  const void* original() const noexcept { return original_; }
  /// Gathers the result of a call that has ended. May be called once.
  virtual R take_result() = 0;

 private:
  const void* original_;
};

}  // namespace detail

/// The future result of `model.async(...)`. Can be moved, but not copied. May be passed to another thread; only one
/// thread at a time may use it. It may outlive the model. Its destructor waits until the call has ended, since the call
/// may use borrowed arguments.
template <class R>
class [[nodiscard]] Pending {
 public:
  explicit Pending(detail::PendingCall<R>* call) noexcept : call_(call) {}
  Pending(Pending&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  Pending& operator=(Pending&& other) noexcept {
    if (this == &other) return *this;
    release();
    call_ = std::exchange(other.call_, nullptr);
    return *this;
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() { release(); }

  /// True until the result is taken or moved.
  bool valid() const noexcept { return call_ != nullptr; }

  /// True if get() would not wait for a `forward`. Does not wait.
  bool ready() const { return call().is_over(); }

  /// Waits until all shards have ended. Shards that no device has started run on this thread. If `forward` is not
  /// const, so do the open shards of earlier calls. Throws Error in the child of a fork if the call was made in the
  /// parent. Throws Error inside a non-const `forward` of the same model, since it would wait for itself.
  void wait() const {
    detail::PendingCall<R>& call = this->call();
    if (call.calls() == nullptr) return;
    if (call.in_order() && !call.is_over() && detail::holds_replica(detail::current_call(), call.original())) {
      throw Error(explain({.what = "forward waits for a call that starts only after this forward has returned",
                           .advice = "wait for the call after forward has returned"}));
    }
    if (!call.calls()->wait(call)) {
      throw Error(explain({.what = "the process was forked while a call was pending",
                           .where = "the child",
                           .expected = "its result to be taken before the fork, or in the parent",
                           .found = "shards that run in the parent only"}));
    }
  }

  /// Waits as wait() does, and gathers and returns the result. May be called once. Throws what the call throws.
  R get() {
    wait();
    const Pending taken = std::move(*this);
    const detail::FloatingPointScope scope(taken.call_->modes());
    return taken.call_->take_result();
  }

 private:
  detail::PendingCall<R>& call() const {
    if (call_ == nullptr) {
      throw Error(explain({.what = "the result of an asynchronous call was taken before",
                           .advice = "call get() once, on the Pending that holds the result"}));
    }
    return *call_;
  }

  void release() noexcept {
    detail::PendingCall<R>* const call = std::exchange(call_, nullptr);
    if (call == nullptr) return;
    detail::AsyncCalls* const calls = call->calls();
    if (calls != nullptr) calls->wait(*call);
    delete call;
    if (calls != nullptr) calls->release();
  }

  detail::PendingCall<R>* call_;
};

}}  // namespace fanout::v0
