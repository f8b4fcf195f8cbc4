// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <fanout/call/call_scope.hpp>
#include <fanout/device/device.hpp>
#include <fanout/memory/copy_into.hpp>
#include <fanout/model/aliasing.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/model_memory.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A model with a member that copies it for a device: `M to(const D&) const`.
template <class M, class D>
concept CopiesItselfTo = requires(const M& model, const D& device) {
  { model.to(device) } -> std::same_as<M>;
};

template <class M, class D>
concept CopyableTo = CopiesItselfTo<M, D> || std::copy_constructible<M>;

/// The copies that a device has of a model: one that `forward` changes, and, if the device has a memory of its own, one
/// that no `forward` changes. The first call that needs a copy makes it. The first call after a change of the original
/// renews it. The thread that runs the shard does both, with the device entered. Of is an Original.
template <class Of, Device D>
class ModelCopies {
  using M = typename Of::model_type;

 public:
  ModelCopies(const Of& original, const D& device) : original_(&original), device_(device) {}

  const Of& original() const noexcept { return *original_; }
  const D& device() const noexcept { return device_; }

  /// True if `forward` has run on the original alone.
  bool are_none() const noexcept { return shown() == nullptr; }
  /// The copy, or the original if there is none. If there are two, the one that `forward` changes.
  const M& model() const noexcept {
    const Copy* const copy = shown();
    return copy != nullptr ? *copy->get() : original_->model;
  }
  /// The version of the original that model() is a copy of.
  std::uint64_t version() const noexcept {
    const Copy* const copy = shown();
    return copy != nullptr ? copy->version : version_of_original();
  }

  /// The model for a const `forward` on a device with its own memory: the original if it is there, otherwise a copy.
  /// The first call of each version makes it while the others wait.
  template <class Ctx>
  const M& placed(const Ctx& ctx) {
    refuse_pointers();
    const std::uint64_t version = version_of_original() + 1;
    std::optional<M>& here = placed_.copy.model;
    if (placed_.version.load(MemoryOrder::acquire) != version) {
      const ForkSafeLock making(placed_.making);
      if (placed_.version.load(MemoryOrder::acquire) != version) {
        if (!copies_itself && !has_slices<M> && lies_in(original_->model, device_.memory().space)) {
          here.reset();
        } else {
          [[maybe_unused]] const EnteredSlicePlace<M> slices(ctx);
          renew(placed_.copy);
        }
        placed_.version.store(version, MemoryOrder::release);
      }
    }
    return here ? *here : original_->model;
  }

  /// The copy for a `forward` that changes it. One call at a time.
  template <class Ctx>
  M& changed(const Ctx& ctx) {
    if (M* const copy = current_changed()) return *copy;
    [[maybe_unused]] const EnteredSlicePlace<M> slices(ctx);
    return renew(changed_);
  }
  /// The same if it is there and up to date, otherwise null. No call may run meanwhile.
  M* current_changed() noexcept {
    return changed_.model && changed_.version == version_of_original() ? &*changed_.model : nullptr;
  }
  /// Makes the next call copy the model anew. No call may run meanwhile.
  void drop_changed() noexcept { changed_.model.reset(); }

  /// Tells that combined fields of the original have changed, whose version stays. No call may run meanwhile.
  void fields_have_changed() noexcept {
    if constexpr (HasOwnMemory<D>) placed_.version.store(0, MemoryOrder::relaxed);
  }

  /// Refuses a model with pointers that a device with its own memory cannot follow.
  static void refuse_pointers() {
    if constexpr (HasOwnMemory<D> && !copies_itself) refuse_host_pointers<M>();
  }

  std::uint64_t version_of_original() const noexcept { return original_->version.load(MemoryOrder::acquire); }

 private:
  static constexpr bool copies_itself = CopiesItselfTo<M, D>;

  struct Copy {
    std::optional<M> model;
    std::uint64_t version = 0;  ///< of the original

    const M* get() const noexcept { return model ? &*model : nullptr; }
  };
  /// The copy that no `forward` changes.
  struct PlacedCopy {
    Atomic<std::uint64_t> version{0};  ///< of the original that was placed last, + 1
    ForkSafeMutex making;              ///< held while the copy is made, and in no `forward`
    Copy copy;                         ///< empty if the original is in the device's memory
  };
  struct NotPlaced {};

  const Copy* shown() const noexcept {
    if (changed_.model) return &changed_;
    if constexpr (HasOwnMemory<D>) {
      if (placed_.copy.model) return &placed_.copy;
    }
    return nullptr;
  }

  M& renew(Copy& copy) {
    const std::uint64_t version = version_of_original();
    const CallScope scope{.caller = current_call(), .original = original_, .busy = true, .refreshing = true};
    const EnteredScope entered(scope);
    M& model = take_original(copy.model);
    copy.version = version;
    return model;
  }

  M& take_original(std::optional<M>& to) {
    if constexpr (copies_itself) {
      return take(to, original_->model.to(device_));
    } else if constexpr (HasOwnMemory<D>) {
      backend::CopyInto into(device_.memory());
      M& copy = take(to, original_->model);
      into.finish();
      check_model_memory(copy, device_.memory().space, device_.id());
      return copy;
    } else {
      return take(to, original_->model);
    }
  }

  /// Assigns, so that tensors keep their memory and PerReplica fields their values.
  template <class From>
  static M& take(std::optional<M>& to, From&& from) {
    constexpr bool assignable = std::is_assignable_v<M&, From>;
    static_assert(assignable || !has_own_fields<M>,
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

  const Of* original_;
  D device_;
  [[no_unique_address]] std::conditional_t<HasOwnMemory<D>, PlacedCopy, NotPlaced> placed_;
  Copy changed_;
};

}}}  // namespace fanout::v0::detail
