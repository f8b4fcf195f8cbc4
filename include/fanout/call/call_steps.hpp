// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/call/call_settings.hpp>
#include <fanout/call/ranked_steps.hpp>
#include <fanout/gather/ranked_values.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The steps that one call makes together with other processes, if there are any. Otherwise all functions do nothing.
/// Call begin(), then join(), then combine(): once for combined fields, once for reductions. After an exception, call
/// fail() instead of what is left.
class CallSteps {
 public:
  /// `fields` and `result`: what a call of this type combines. `meets`: its shards may meet those of other processes.
  /// Without all three, a process that fails needs to tell nobody.
  CallSteps(const CallSettings& settings, RankedCalls& calls, const RankedCallType& type, bool fields, bool result,
            bool meets) noexcept {
    if (settings.ranks == nullptr) return;
    part_ = settings.ranked;
    meets_ = meets;
    call_part(&RanksPart::set, settings, calls, type, 1 + (fields ? 1 : 0) + (result ? 1 : 0), meets);
  }
  CallSteps(CallSteps&& other) noexcept {
    if (other.part_ == nullptr) return;
    part_ = std::exchange(other.part_, nullptr);
    meets_ = other.meets_;
    steps_ = other.steps_;
  }
  CallSteps& operator=(CallSteps&&) = delete;
  /// Tells the others if the call does not go on, as when a Pending is destroyed.
  ~CallSteps() {
    if (part_ != nullptr) call_part(&RanksPart::end);
  }

  /// True if there are other processes.
  bool has_others() const noexcept { return part_ != nullptr; }
  /// The position of this process among them.
  std::size_t rank() const noexcept { return part_ == nullptr ? 0 : steps_.ranks().rank(); }

  /// Throws Error if other threads than the main one may not make steps.
  void check_any_thread() const {
    if (part_ != nullptr) steps_.ranks().check_any_thread();
  }

  /// Waits until all processes have begun the call. Sets the call's number and its place in the whole batch. The call
  /// borrows that place from this object, which must not be moved any more. Borrows the call's plan.
  void begin(CallFrame& call) {
    if (part_ != nullptr) call_part(&RanksPart::begin, call);
  }

  /// Call this when the result of an asynchronous call is taken, which may be long after its deadline: from now on, the
  /// others have as much time again.
  void wait_anew() noexcept {
    if (part_ != nullptr) call_part(&RanksPart::wait_anew);
  }

  /// Call this when all shards of this process have ended without an exception. If they may meet those of other
  /// processes, waits for these.
  void join() {
    if (part_ != nullptr && meets_) call_part(&RanksPart::join);
  }

  /// Combines the values that `visit(f)` shows: it calls `f(fold, elements, path)` for each.
  template <class Visit>
  void combine(const Visit& visit) {
    if (part_ != nullptr) call_part(&RanksPart::combine, &show_values<Visit>, &visit);
  }

  /// Call this in the `catch` block of what ends the call. Throws what all processes throw. Returns if they do not wait
  /// for this one.
  void fail() {
    if (part_ != nullptr) call_part(&RanksPart::tell);
  }

  /// The same, but returns the exception.
  std::exception_ptr failure() noexcept {
    try {
      fail();
    } catch (...) {
      return std::current_exception();
    }
    return std::current_exception();
  }

 private:
  template <class F, class... A>
  [[gnu::cold, gnu::noinline]] void call_part(F RanksPart::*function, A&&... arguments) {
    (steps_.*(part_->*function))(arguments...);
  }

  const RanksPart* part_ = nullptr;  // null without other processes; then nothing else is set
  bool meets_;
  RankedSteps steps_;
};

/// Stands for CallSteps if a call makes no step whatever the options.
struct NoSteps {
  NoSteps(const CallSettings&, const RankedCalls&, bool) noexcept {}
  NoSteps() noexcept = default;
  static bool has_others() noexcept { return false; }
  static std::size_t rank() noexcept { return 0; }
  static void check_any_thread() noexcept {}
  static void begin(CallFrame&) noexcept {}
  static void wait_anew() noexcept {}
  static void join() noexcept {}
  template <class Visit>
  static void combine(const Visit&) noexcept {}
  static void fail() noexcept {}
  static std::exception_ptr failure() noexcept { return std::current_exception(); }
};

/// The steps of a call of model M that returns an R.
template <class M, class R, bool fields>
struct StepsOf : CallSteps {
  StepsOf(const CallSettings& settings, RankedCalls& calls, bool meets) noexcept
      : CallSteps(settings, calls, ranked_call_type<M, R>, fields, has_reductions<R>, meets) {}
};

}}}  // namespace fanout::v0::detail
