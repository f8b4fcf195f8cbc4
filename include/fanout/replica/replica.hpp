// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/call_order.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/device/device.hpp>
#include <fanout/model/aliasing.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/model_memory.hpp>
#include <fanout/model/original.hpp>
#include <fanout/model/unforwardable.hpp>
#include <fanout/model/visit_combined.hpp>
#include <fanout/replica/model_copies.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Throws Error for a call that would wait for a replica that its own caller holds.
template <Device D>
[[noreturn]] void refuse_recursion(const D& device) {
  throw Error(explain({.what = "a model with a non-const forward was called from inside its own forward",
                       .where = Text() << "the replica on " << device.id(),
                       .advice = "make forward const, or call another model"}));
}

}  // namespace detail

/// The replica of a model on one device. Host devices share the memory of the original, so a const `forward` runs on
/// the original. The replica has its own copy if `forward` is not const, or if the model was given as per_replica() or
/// has PerReplica fields. The first such call makes the copy, and the first one after each change of the original
/// renews it. What `forward` changes in the copy stays until then. On a device with its own memory, a const `forward`
/// runs on a copy, too, unless the arrays of the original are in that memory. That copy is another one: no `forward`
/// changes it, so calls need no lock.
///
/// The model's `M to(const D&) const` makes the copy if there is one. Otherwise its copy constructor and its assignment
/// do, under a CopyInto for a device with its own memory. Models whose copies would share what they change are refused.
/// The thread that runs the shard copies, with the device entered.
template <class M, Device D>
class Replica {
 public:
  using model_type = typename detail::Original<M>::model_type;

  Replica(const detail::Original<M>& original, const D& device) : copies_(original, device) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const D& device() const noexcept { return copies_.device(); }

  /// The model that `forward` runs on; if there are two, the one that is not const. Must not be read while a call runs
  /// whose `forward` is not const.
  const model_type& model() const noexcept { return copies_.model(); }

  /// True as long as the replica has no copy of its own.
  bool shares_original() const noexcept { return copies_.are_none(); }

  /// The version of the original that model() is a copy of.
  std::uint64_t version() const noexcept { return copies_.version(); }

  /// Throws DeviceMismatch if arrays of the model are in another memory than the device's. Checks once per version of
  /// the original. Models with a member `to(device)` are not checked.
  void check_memory() const {
    if constexpr (HasArrayLeaf<model_type> && !detail::CopiesItselfTo<model_type, D>) {
      const std::uint64_t version = copies_.version_of_original() + 1;
      if (checked_.load(detail::MemoryOrder::relaxed) == version) return;
      const auto& model = copies_.original().model;
      if constexpr (HasOwnMemory<D>) {
        detail::check_model_can_move(model, device().memory(), device().id());
      } else {
        detail::check_model_memory(model, device().memory().space, device().id());
      }
      checked_.store(version, detail::MemoryOrder::relaxed);
    }
  }

  template <class Ctx, class... A>
  static constexpr detail::CallOrder order =
      !(ConstForward<model_type, Ctx, A...> && detail::Original<M>::shared && !detail::has_own_fields<model_type>)
          ? detail::CallOrder::changes
      : detail::has_combined_fields<model_type> ? detail::CallOrder::after_changes
                                                : detail::CallOrder::any;

  /// Runs `forward` for one shard on this thread, with the device entered. If `forward` is not const, waits while
  /// another call holds the replica, and throws Error if it is called from inside itself. Returns a value, also if
  /// `forward` returns a reference.
  template <class Ctx, class... A>
  auto run(const detail::CallScope* caller, Ctx& ctx, A&&... args) const {
    constexpr bool may_share =
        ConstForward<model_type, Ctx, A...> && detail::Original<M>::shared && !detail::has_own_fields<model_type>;
    [[maybe_unused]] const detail::Original<M>* const original = &copies_.original();
    if constexpr (may_share && !HasOwnMemory<D>) {
      const detail::CallScope scope{.caller = caller, .original = original};
      const detail::EnteredScope entered(scope);
      return detail::call_forward(original->model, ctx, std::forward<A>(args)...);
    } else if constexpr (may_share && detail::CopyableTo<model_type, D>) {
      const model_type& here = copies_.placed(ctx);
      const detail::CallScope scope{.caller = caller, .original = original};
      const detail::EnteredScope entered(scope);
      return detail::call_forward(here, ctx, std::forward<A>(args)...);
    } else if constexpr (Forwardable<model_type, Ctx, A...> && detail::CopyableTo<model_type, D>) {
      if constexpr (!detail::CopiesItselfTo<model_type, D>) detail::refuse_aliasing<model_type>();
      copies_.refuse_pointers();
      if (detail::holds_replica(caller, original)) detail::refuse_recursion(device());
      const detail::ForkSafeLock busy(busy_);
      const detail::CallScope scope{.caller = caller, .original = original, .busy = true};
      const detail::EnteredScope entered(scope);
      model_type& copy = copies_.changed(ctx);
      if constexpr (ConstForward<model_type, Ctx, A...>) {
        return detail::call_forward(std::as_const(copy), ctx, std::forward<A>(args)...);
      } else {
        return detail::call_forward(copy, ctx, std::forward<A>(args)...);
      }
    } else if constexpr (!Forwardable<model_type, Ctx, A...>) {
      return detail::refuse_unforwardable<model_type, Ctx, A...>();
    } else {
      static_assert(
          detail::CopyableTo<model_type, D>,
          "fanout: a model whose forward is not const, or that is given as per_replica, is copied for each device, so "
          "it must be copyable; make forward const to share one model, or let a factory make one for each device");
      return detail::call_forward(detail::instance<model_type&>(), ctx, std::forward<A>(args)...);
    }
  }

  /// See ModelCopies.
  model_type* current_copy() const noexcept { return copies_.current_changed(); }
  void drop_copy() const noexcept { copies_.drop_changed(); }
  void fields_have_changed() const noexcept { copies_.fields_have_changed(); }

 private:
  mutable detail::ModelCopies<detail::Original<M>, D> copies_;
  mutable detail::Atomic<std::uint64_t> checked_{0};  // last checked version + 1
  mutable detail::ForkSafeMutex busy_;                // held by each `forward` that is not const
};

}}  // namespace fanout::v0
