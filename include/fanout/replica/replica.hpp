// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/call_order.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/device/device.hpp>
#include <fanout/memory/copy_into.hpp>
#include <fanout/model/aliasing.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/model_memory.hpp>
#include <fanout/model/original.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/model/unforwardable.hpp>
#include <fanout/model/visit_combined.hpp>
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

/// A model with a member that copies it for a device: `M to(const D&) const`.
template <class M, class D>
concept CopiesItselfTo = requires(const M& model, const D& device) {
  { model.to(device) } -> std::same_as<M>;
};

template <class M, class D>
concept CopyableTo = CopiesItselfTo<M, D> || std::copy_constructible<M>;

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

  Replica(const detail::Original<M>& original, const D& device) : original_(&original), device_(device) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const D& device() const noexcept { return device_; }

  /// The model that `forward` runs on; if there are two, the one that is not const. Must not be read while a call runs
  /// whose `forward` is not const.
  const model_type& model() const noexcept {
    const Copy* const copy = shown();
    return copy != nullptr ? *copy->get() : original_->model;
  }

  /// True as long as the replica has no copy of its own.
  bool shares_original() const noexcept { return shown() == nullptr; }

  /// The version of the original that model() is a copy of.
  std::uint64_t version() const noexcept {
    const Copy* const copy = shown();
    return copy != nullptr ? copy->version : original_->version.load(detail::MemoryOrder::acquire);
  }

  /// Throws DeviceMismatch if arrays of the model are in another memory than the device's. Checks once per version of
  /// the original. Models with a member `to(device)` are not checked.
  void check_memory() const {
    if constexpr (HasArrayLeaf<model_type> && !copies_itself) {
      const std::uint64_t version = original_->version.load(detail::MemoryOrder::acquire) + 1;
      if (checked_.load(detail::MemoryOrder::relaxed) == version) return;
      if constexpr (HasOwnMemory<D>) {
        detail::check_model_can_move(original_->model, device_.memory(), device_.id());
      } else {
        detail::check_model_memory(original_->model, device_.memory().space, device_.id());
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
    if constexpr (may_share && !HasOwnMemory<D>) {
      const detail::CallScope scope{.caller = caller, .original = original_};
      const detail::EnteredScope entered(scope);
      return detail::call_forward(original_->model, ctx, std::forward<A>(args)...);
    } else if constexpr (may_share && detail::CopyableTo<model_type, D>) {
      const model_type& here = placed(ctx);
      const detail::CallScope scope{.caller = caller, .original = original_};
      const detail::EnteredScope entered(scope);
      return detail::call_forward(here, ctx, std::forward<A>(args)...);
    } else if constexpr (Forwardable<model_type, Ctx, A...> && detail::CopyableTo<model_type, D>) {
      if constexpr (!detail::CopiesItselfTo<model_type, D>) detail::refuse_aliasing<model_type>();
      refuse_pointers();
      if (detail::holds_replica(caller, original_)) detail::refuse_recursion(device_);
      const detail::ForkSafeLock busy(busy_);
      const detail::CallScope scope{.caller = caller, .original = original_, .busy = true};
      const detail::EnteredScope entered(scope);
      model_type& copy = refreshed(copy_, ctx);
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

  /// The copy that `forward` changes if it is up to date, otherwise null. No call may run meanwhile.
  model_type* current_copy() const noexcept { return is_current(copy_) ? copy_.get() : nullptr; }

  /// Makes the next call copy the model anew. No call may run meanwhile.
  void drop_copy() const noexcept { copy_.model.reset(); }

  /// Tells the replica that combined fields of the original have changed, whose version stays. No call may run
  /// meanwhile.
  void fields_have_changed() const noexcept {
    if constexpr (HasOwnMemory<D>) placed_.version.store(0, detail::MemoryOrder::relaxed);
  }

 private:
  static constexpr bool copies_itself = detail::CopiesItselfTo<model_type, D>;

  struct Copy {
    std::optional<model_type> model;
    std::uint64_t version = 0;  ///< of the original

    const model_type* get() const noexcept { return model ? &*model : nullptr; }
    model_type* get() noexcept { return model ? &*model : nullptr; }
  };

  /// The copy that a const `forward` runs on.
  struct PlacedCopy {
    detail::Atomic<std::uint64_t> version{0};  ///< of the original that was placed last, + 1
    detail::ForkSafeMutex making;              ///< held while the copy is made, and in no `forward`
    Copy copy;                                 ///< empty if the original is in the device's memory
  };
  struct NotPlaced {};

  bool is_current(const Copy& copy) const noexcept {
    return copy.model && copy.version == original_->version.load(detail::MemoryOrder::acquire);
  }

  /// The copy that model() shows, or null if that is the original.
  const Copy* shown() const noexcept {
    if (copy_.model) return &copy_;
    if constexpr (HasOwnMemory<D>) {
      if (placed_.copy.model) return &placed_.copy;
    }
    return nullptr;
  }

  static void refuse_pointers() {
    if constexpr (HasOwnMemory<D> && !copies_itself) detail::refuse_host_pointers<model_type>();
  }

  /// The model that a const `forward` runs on, on a device with its own memory: the original if it is there, otherwise
  /// a copy. The first call of each version makes it while the others wait.
  template <class Ctx>
  const model_type& placed(const Ctx& ctx) const {
    refuse_pointers();
    const std::uint64_t version = original_->version.load(detail::MemoryOrder::acquire) + 1;
    std::optional<model_type>& here = placed_.copy.model;
    if (placed_.version.load(detail::MemoryOrder::acquire) != version) {
      const detail::ForkSafeLock making(placed_.making);
      if (placed_.version.load(detail::MemoryOrder::acquire) != version) {
        if (!copies_itself && !detail::has_slices<model_type> &&
            detail::lies_in(original_->model, device_.memory().space)) {
          here.reset();
        } else {
          [[maybe_unused]] const detail::EnteredSlicePlace<model_type> slices(ctx);
          renew(placed_.copy);
        }
        placed_.version.store(version, detail::MemoryOrder::release);
      }
    }
    return here ? *here : original_->model;
  }

  /// A copy, which is made or renewed if it is not up to date.
  template <class Ctx>
  model_type& refreshed(Copy& copy, const Ctx& ctx) const {
    if (is_current(copy)) return *copy.get();
    [[maybe_unused]] const detail::EnteredSlicePlace<model_type> slices(ctx);
    return renew(copy);
  }

  model_type& renew(Copy& copy) const {
    const std::uint64_t version = original_->version.load(detail::MemoryOrder::acquire);
    const detail::CallScope scope{
        .caller = detail::current_call(), .original = original_, .busy = true, .refreshing = true};
    const detail::EnteredScope entered(scope);
    model_type& model = take_original(copy.model);
    copy.version = version;
    return model;
  }

  model_type& take_original(std::optional<model_type>& to) const {
    if constexpr (copies_itself) {
      return take(to, original_->model.to(device_));
    } else if constexpr (HasOwnMemory<D>) {
      backend::CopyInto into(device_.memory());
      model_type& copy = take(to, original_->model);
      into.finish();
      detail::check_model_memory(copy, device_.memory().space, device_.id());
      return copy;
    } else {
      return take(to, original_->model);
    }
  }

  /// Assigns, so that tensors keep their memory and PerReplica fields their values.
  template <class From>
  static model_type& take(std::optional<model_type>& to, From&& from) {
    constexpr bool assignable = std::is_assignable_v<model_type&, From>;
    static_assert(assignable || !detail::has_own_fields<model_type>,
                  "fanout: a model with PerReplica fields must be assignable, since update() assigns the original to "
                  "each replica");
    if constexpr (assignable) {
      if (to) {
        *to = std::forward<From>(from);
        return *to;
      }
    }
    return to.emplace(std::forward<From>(from));
  }

  const detail::Original<M>* original_;
  D device_;
  mutable detail::Atomic<std::uint64_t> checked_{0};  // last checked version + 1
  [[no_unique_address]] mutable std::conditional_t<HasOwnMemory<D>, PlacedCopy, NotPlaced> placed_;
  mutable detail::ForkSafeMutex busy_;  // held by each `forward` that is not const; guards the copy that it changes
  mutable Copy copy_;
};

}}  // namespace fanout::v0
