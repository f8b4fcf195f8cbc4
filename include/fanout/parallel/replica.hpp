// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/device/device.hpp>
#include <fanout/parallel/call_chain.hpp>
#include <fanout/parallel/forward.hpp>
#include <fanout/parallel/original.hpp>
#include <fanout/parallel/unforwardable.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/right.hpp>

namespace fanout::inline v0 {

namespace detail {

/// Refuses a call that would wait for the replica that the code which makes it has for itself.
template <Device D>
[[noreturn]] void refuse_recursion(const D& device) {
  throw Error(explain({.what = "a model with a non-const forward was called from inside its own forward",
                       .where = "the replica on " + to_string(device.id()),
                       .advice = "make forward const, or call another model"}));
}

}  // namespace detail

/// A model that lives on one device. A const `forward` runs on the original itself, since host devices share its
/// memory; for one that is not const, or of a model given as per_replica(), the replica makes a copy of its own, at the
/// first such call and again whenever the original has changed. What `forward` changes in that copy stays until then.
template <class M, Device D>
class Replica {
 public:
  using model_type = typename Original<M>::model_type;

  Replica(const Original<M>& original, const D& device) : original_(&original), device_(device) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const D& device() const noexcept { return device_; }

  /// What `forward` runs on. Not to be read while a call of a model with a non-const `forward` is running.
  const model_type& model() const noexcept { return copy_ ? *copy_ : original_->model; }

  /// True until a call has made this replica have a copy of its own.
  bool shares_original() const noexcept { return !copy_; }

  /// The version of the original that model() shows.
  std::uint64_t version() const noexcept { return copy_ ? version_ : original_->version.load(MemoryOrder::acquire); }

  /// Runs `forward` for one shard on this thread, with the device entered. A non-const one waits while another call has
  /// this replica; from inside itself it throws Error. Returns a value also where `forward` returns a reference.
  template <class Ctx, class... A>
  auto run(const CallLink* caller, Ctx& ctx, A&&... args) const {
    if constexpr (ConstForward<model_type, Ctx, A...> && Original<M>::shared) {
      const CallLink link{.caller = caller, .original = original_};
      const EnteredLink entered(link);
      return detail::call_forward(original_->model, ctx, std::forward<A>(args)...);
    } else if constexpr (Forwardable<model_type, Ctx, A...> && std::copy_constructible<model_type>) {
      if (keeps_busy(caller, original_)) detail::refuse_recursion(device_);
      const HeldRight busy(busy_);
      const CallLink link{.caller = caller, .original = original_, .busy = true};
      const EnteredLink entered(link);
      refresh();
      if constexpr (ConstForward<model_type, Ctx, A...>) {
        return detail::call_forward(std::as_const(*copy_), ctx, std::forward<A>(args)...);
      } else {
        return detail::call_forward(*copy_, ctx, std::forward<A>(args)...);
      }
    } else if constexpr (!Forwardable<model_type, Ctx, A...>) {
      return detail::refuse_unforwardable<model_type, Ctx, A...>();
    } else {
      static_assert(
          std::copy_constructible<model_type>,
          "fanout: a model whose forward is not const, or that is given as per_replica, is copied for each device, so "
          "it must be copyable; make forward const to share one model, or let a factory make one for each device");
      return detail::call_forward(detail::instance<model_type&>(), ctx, std::forward<A>(args)...);
    }
  }

 private:
  void refresh() const {
    const std::uint64_t version = original_->version.load(MemoryOrder::acquire);
    if (copy_ && version_ == version) return;
    if constexpr (std::is_copy_assignable_v<model_type>) {
      if (copy_) {
        *copy_ = original_->model;  // tensors keep their memory
      } else {
        copy_.emplace(original_->model);
      }
    } else {
      copy_.emplace(original_->model);
    }
    version_ = version;
  }

  const Original<M>* original_;
  D device_;
  mutable Right busy_;  // guards what follows
  mutable std::optional<model_type> copy_;
  mutable std::uint64_t version_ = 0;
};

}  // namespace fanout::inline v0
