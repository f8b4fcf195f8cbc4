// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The type of a call, for processes that must make the same calls.
struct RankedCallType {
  /// A model M whose call returns an R. Allocates nothing, since others may wait for a process that asks for it.
  template <class M, class R>
  static const RankedCallType& of() noexcept {
    static const RankedCallType type(type_name_view<M>(), type_name_view<R>());
    return type;
  }

  RankedCallType(std::string_view of_model, std::string_view of_result) noexcept
      : model(of_model), result(of_result), hash(backend::RankedStep::hash_of(model)) {
    backend::RankedStep::mix(hash, backend::RankedStep::hash_of(result));
  }

  std::string_view model;
  std::string_view result;
  std::uint64_t hash;
};

/// Numbers the calls that a model makes together with other processes, also those that fail before their shards run.
/// The numbers are the same on all processes.
struct RankedCalls {
  /// `ranks`: null without other processes.
  explicit RankedCalls(const backend::ProcessRanks* ranks) noexcept
      : model(ranks == nullptr ? 0 : ranks->number_model()) {}

  const std::uint32_t model;  // its number among the models of all processes
  Atomic<std::uint32_t> count{0};
};

/// The steps that one call makes together with other processes: one that begins it, one when the shards have ended if
/// they may meet, one for combined fields, one for reductions. If there are no other processes, all functions do
/// nothing. A call that fails tells the others at its next step.
///
/// `fields` and `result`: what a call of this type combines. `meets`: its shards may meet those of other processes.
/// Without all three, a process that fails needs to tell nobody.
class RankedCall {
 public:
  RankedCall(const CallSettings& settings, RankedCalls& calls, const RankedCallType& (*type)() noexcept, bool fields,
             bool result, bool meets) noexcept {
    if (settings.ranks == nullptr) return;
    part_ = settings.ranked;
    call_part(&RanksPart::set, settings, calls, type, 1 + (fields ? 1 : 0) + (result ? 1 : 0), meets);
  }
  RankedCall(RankedCall&& other) noexcept {
    if (other.ranks_ == nullptr) return;
    ranks_ = std::exchange(other.ranks_, nullptr);
    part_ = other.part_;
    type_ = other.type_;
    left_ = other.left_;
    meets_ = other.meets_;
    rendezvous_ = other.rendezvous_;
    collectives_ = other.collectives_;
    model_ = other.model_;
    number_ = other.number_;
    rows_ = other.rows_;
    shards_ = other.shards_;
    place_ = other.place_;
    deadline_ = other.deadline_;
  }
  RankedCall& operator=(RankedCall&&) = delete;
  /// Tells the others if the call does not go on, as when a Pending is destroyed.
  ~RankedCall() {
    if (ranks_ != nullptr) call_part(&RanksPart::end);
  }

  /// True if there are other processes.
  bool has_others() const noexcept { return ranks_ != nullptr; }
  /// The position of this process among them.
  std::size_t rank() const noexcept { return ranks_ == nullptr ? 0 : ranks_->rank(); }

  /// Throws Error if other threads than the main one may not make steps.
  void check_any_thread() const {
    if (ranks_ != nullptr) ranks_->check_any_thread();
  }

  /// Waits until all processes have begun the call. Sets the call's number and its place in the whole batch. The call
  /// borrows that place from this object, which must not be moved any more. Borrows the call's plan.
  void begin(CallFrame& call) {
    if (ranks_ != nullptr) call_part(&RanksPart::begin, call);
  }

  /// Call this when the result of an asynchronous call is taken, which may be long after its deadline: from now on, the
  /// others have as much time again.
  void wait_anew() noexcept {
    if (ranks_ != nullptr) call_part(&RanksPart::wait_anew);
  }

  /// Call this when all shards of this process have ended without an exception. If they may meet those of other
  /// processes, waits for these.
  void join() {
    if (ranks_ != nullptr && meets_) call_part(&RanksPart::join);
  }

  /// Combines the values that `visit(f)` shows: it calls `f(fold, elements, path)` for each.
  template <class Visit>
  void combine(const Visit& visit) {
    if (ranks_ != nullptr) call_part(&RanksPart::combine, &show_values<Visit>, &visit);
  }

  /// Call this in the `catch` block of what ends the call. Throws what all processes throw. Returns if they do not wait
  /// for this one.
  void fail() {
    if (ranks_ != nullptr) call_part(&RanksPart::tell);
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
  friend RanksPart;

  template <class F, class... A>
  [[gnu::cold, gnu::noinline]] void call_part(F RanksPart::*function, A&&... arguments) {
    (this->*(part_->*function))(arguments...);
  }

  FANOUT_INLINE void set(const CallSettings& settings, RankedCalls& calls, const RankedCallType& (*type)() noexcept,
                         int steps, bool meets) noexcept;

  FANOUT_INLINE void start_clock() noexcept;

  FANOUT_INLINE void begin_with_others(CallFrame& call);

  FANOUT_INLINE void wait_for_others_anew() noexcept;

  FANOUT_INLINE void join_others();

  /// Tells the others that the shards of this process have ended. Waits for nobody.
  void leave_rendezvous() noexcept {
    if (rendezvous_ != nullptr) rendezvous_->leave_all();
  }
  /// Waits until the shards of all processes have ended. All processes have made the step that follows the shards, or
  /// it has failed on all.
  void end_rendezvous() noexcept { delete std::exchange(rendezvous_, nullptr); }

  FANOUT_INLINE void combine_with_others(void (*visit)(const void*, backend::RankedValues&), const void* of);

  /// Calls `f()`, which makes a step of the call. If it throws before all processes have made the step, all of them
  /// have ended the call. Otherwise the others do not know of the exception, and may wait at the next step.
  template <class F>
  void make(backend::RankedStep& step, const F& f);

  FANOUT_INLINE void tell();

  FANOUT_INLINE void end() noexcept;

  /// Throws the Timeout of a shard that waited in a collective for ranks that were late.
  FANOUT_INLINE static void throw_if_late(const std::exception_ptr& failure);

  FANOUT_INLINE backend::RankedStep step(const std::exception_ptr& failure) const noexcept;

  const backend::ProcessRanks* ranks_ = nullptr;  // null without other processes; then nothing else is set
  const RanksPart* part_;
  const RankedCallType& (*type_)() noexcept;
  int left_;  // steps that other processes may still wait for
  bool meets_;
  backend::ProcessRendezvous* rendezvous_;  // owned; null if the shards do not meet, or all have ended
  const backend::CollectiveTransport* collectives_;
  std::uint32_t model_;
  std::uint32_t number_;
  std::size_t rows_;
  std::size_t shards_;
  BatchPlace place_;
  backend::StepDeadline deadline_;  // of the next step
};

inline constexpr RanksPart RanksPart::table{.set = &RankedCall::set,
                                            .begin = &RankedCall::begin_with_others,
                                            .wait_anew = &RankedCall::wait_for_others_anew,
                                            .join = &RankedCall::join_others,
                                            .combine = &RankedCall::combine_with_others,
                                            .tell = &RankedCall::tell,
                                            .end = &RankedCall::end,
                                            .throw_if_late = &RankedCall::throw_if_late};

/// Stands for a RankedCall if no step is made whatever the options.
struct UnrankedCall {
  UnrankedCall(const CallSettings&, const RankedCalls&, bool) noexcept {}
  UnrankedCall() noexcept = default;
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
struct RankedCallOf : RankedCall {
  RankedCallOf(const CallSettings& settings, RankedCalls& calls, bool meets) noexcept
      : RankedCall(settings, calls, &RankedCallType::of<M, R>, fields, has_reductions<R>, meets) {}
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/ranked_call.ipp>
#endif
