// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/base/polymorphic.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A split policy that learns from the calls of a model: see Split.
template <class S>
concept ObservesCalls = Split<S> && requires(S& split, const CallTimes& call) {
  split.observe(call);
};

}  // namespace detail

/// A split policy of any type, by value, so that Options needs no template parameter. A call asks it once, through one
/// virtual function. The default is EvenSplit, which is called directly.
class AnySplit {
 public:
  AnySplit() noexcept = default;

  template <class S>
    requires(!std::is_same_v<std::remove_cvref_t<S>, AnySplit> && Split<std::remove_cvref_t<S>>)
  AnySplit(S&& split)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): .split = EvenSplit{}
      : other_(other_than_even(std::forward<S>(split))) {}

  // Not inlined: its callers are not in a hurry, and would have EvenSplit twice.
  [[gnu::noinline]] Plan operator()(std::size_t rows, std::size_t devices) const {
    if (is_even()) [[likely]]
      return EvenSplit{}(rows, devices);
    return other_->plan(rows, devices);
  }

  /// True for an EvenSplit, whose plans need no check.
  bool is_even() const noexcept { return !other_; }

  /// Shows the policy the devices of the model that it is made for, if it has a `begin`.
  void begin(const DeviceId* devices, std::size_t count) {
    if (!is_even()) other_->begin(devices, count);
  }

  /// True if the policy has an `observe`.
  bool observes() const noexcept { return !is_even() && other_->observes(); }
  /// Shows the policy a call, if it observes calls.
  void observe(const CallTimes& call) {
    if (!is_even()) other_->observe(call);
  }

  /// The policy, if it is an S; otherwise null.
  template <class S>
  const S* get_if() const noexcept {
    const auto* const holding = dynamic_cast<const Holding<S>*>(other_.get());
    return holding == nullptr ? nullptr : &holding->split;
  }

 private:
  struct Held {
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    virtual ~Held() = default;
    virtual Plan plan(std::size_t rows, std::size_t devices) const = 0;
    virtual void begin(const DeviceId* devices, std::size_t count) = 0;
    virtual bool observes() const noexcept = 0;
    virtual void observe(const CallTimes& call) = 0;
    virtual Held* copy() const = 0;
  };
  template <class S>
  struct Holding final : Held {
    explicit Holding(S from) : split(std::move(from)) {}
    Plan plan(std::size_t rows, std::size_t devices) const override { return std::as_const(split)(rows, devices); }
    void begin([[maybe_unused]] const DeviceId* devices, [[maybe_unused]] std::size_t count) override {
      if constexpr (requires { split.begin(devices, count); }) split.begin(devices, count);
    }
    bool observes() const noexcept override { return detail::ObservesCalls<S>; }
    void observe([[maybe_unused]] const CallTimes& call) override {
      if constexpr (detail::ObservesCalls<S>) split.observe(call);
    }
    Held* copy() const override { return new Holding(split); }
    S split;
  };

  template <class S>
  static Held* other_than_even(S&& split) {
    using Policy = std::remove_cvref_t<S>;
    if constexpr (std::is_same_v<Policy, EvenSplit>) {
      return nullptr;
    } else {
      return new Holding<Policy>(std::forward<S>(split));
    }
  }

  detail::Polymorphic<Held> other_;  // none for EvenSplit
};

}}  // namespace fanout::v0
