// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/model/original.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

/// A field of a model that every replica has for itself: a cache, a generator, scratch memory. A model with such a
/// field is copied for each device, also if its `forward` is const. Each replica runs one call at a time. So `forward`
/// may change the field, const or not:
///
///     struct Model {
///       fanout::PerReplica<std::map<int, float>> cache;
///       auto forward(std::span<const int> x) const { ... (*cache)[x[0]] ... }
///     };
///
/// The field is copied when a replica is made. A refresh of the replica after an update() leaves it unchanged.
///
/// As a model: every device has a copy of it; see per_replica().
template <class T>
class PerReplica {
 public:
  using value_type = T;

  PerReplica() = default;
  PerReplica(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): is a T

  PerReplica(const PerReplica&) = default;
  PerReplica(PerReplica&&) noexcept(std::is_nothrow_move_constructible_v<T>) = default;

  /// Assigns the value. In a replica that is being refreshed the value stays.
  PerReplica& operator=(const PerReplica& other) requires std::is_copy_assignable_v<T> {
    if (!is_being_refreshed()) value_ = other.value_;
    return *this;
  }
  PerReplica& operator=(PerReplica&& other) noexcept(
      std::is_nothrow_move_assignable_v<T>) requires std::is_move_assignable_v<T> {
    if (!is_being_refreshed()) value_ = std::move(other.value_);
    return *this;
  }
  ~PerReplica() = default;

  /// The value, which may be changed. For a const object, throws Error inside a `forward` that runs on a shared model.
  /// A model is shared if its class does not show this field.
  T& operator*() noexcept { return value_; }
  T& operator*() const {
    check_alone();
    return value_;
  }
  T* operator->() noexcept { return &value_; }
  T* operator->() const { return &**this; }

 private:
  static bool is_being_refreshed() noexcept {
    return detail::current_call() != nullptr && detail::current_call()->refreshing;
  }

  static void check_alone() {
    const detail::CallScope* const scope = detail::current_call();
    if (scope == nullptr || scope->busy || scope->updating) return;
    throw Error(explain({.what = "a PerReplica was used in a model that is shared",
                         .expected = "a model that shows the field, so that each device has a copy",
                         .advice = "list the field with fields(), or give the model as per_replica(model)"}));
  }

  mutable T value_;
};

/// Gives each device its own copy of a model with a const `forward`, which host devices would share. For models with
/// `mutable` caches, or with data that is better read from each core's own memory:
///
///     fanout::ParallelModel model{fanout::per_replica(Model{...}), fanout::host_devices(2)};
///
/// The model is treated as if its `forward` were not const. Each replica copies it at its first call, and again after
/// an update(). Each replica runs one call at a time, so `mutable` members need no lock. The model must be copyable.
template <class M>
PerReplica<M> per_replica(M model) {
  return {std::move(model)};
}

template <class M>
struct detail::Original<PerReplica<M>> {
  using model_type = M;
  static constexpr bool shared = false;

  explicit Original(PerReplica<M>&& from) : model(std::move(*from)) {}
  Original(const Original&) = delete;
  Original& operator=(const Original&) = delete;

  M model;
  detail::Atomic<std::uint64_t> version{0};
};

}}  // namespace fanout::v0
