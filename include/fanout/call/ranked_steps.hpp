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
  constexpr RankedCallType(std::string_view of_model, std::string_view of_result) noexcept
      : model(of_model), result(of_result), hash(backend::RankedStep::hash_of(model)) {
    backend::RankedStep::mix(hash, backend::RankedStep::hash_of(result));
  }

  std::string_view model;
  std::string_view result;
  std::uint64_t hash;
};
/// A model M whose call returns an R.
template <class M, class R>
inline constexpr RankedCallType ranked_call_type(type_name_view<M>(), type_name_view<R>());

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
/// they may meet, one for combined fields, one for reductions. A call that fails tells the others at its next step.
/// CallSteps says when the functions are to be called.
class RankedSteps {
 public:
  // Most calls make no steps, and set nothing: a call without other processes does not pay for that.
  RankedSteps() noexcept {}  // NOLINT(*-member-init,modernize-use-equals-default)

  /// `steps`: how many the call makes. `meets`: its shards may meet those of other processes, which is one more step.
  FANOUT_INLINE void set(const CallSettings& settings, RankedCalls& calls, const RankedCallType& type, int steps,
                         bool meets) noexcept;
  FANOUT_INLINE void begin(CallFrame& call);
  FANOUT_INLINE void wait_anew() noexcept;
  FANOUT_INLINE void join();
  FANOUT_INLINE void combine(void (*visit)(const void*, backend::RankedValues&), const void* of);
  FANOUT_INLINE void tell();
  /// Tells the others if the call does not go on.
  FANOUT_INLINE void end() noexcept;

  const backend::ProcessRanks& ranks() const noexcept { return *ranks_; }

  /// Throws the Timeout of a shard that waited in a collective for ranks that were late.
  FANOUT_INLINE static void throw_if_late(const std::exception_ptr& failure);

 private:
  FANOUT_INLINE void start_clock() noexcept;

  /// Tells the others that the shards of this process have ended. Waits for nobody.
  void leave_rendezvous() noexcept {
    if (rendezvous_ != nullptr) rendezvous_->leave_all();
  }
  /// Waits until the shards of all processes have ended. All processes have made the step that follows the shards, or
  /// it has failed on all.
  void end_rendezvous() noexcept { delete std::exchange(rendezvous_, nullptr); }

  /// Calls `f()`, which makes a step of the call. If it throws before all processes have made the step, all of them
  /// have ended the call. Otherwise the others do not know of the exception, and may wait at the next step.
  template <class F>
  void make(backend::RankedStep& step, const F& f);

  FANOUT_INLINE backend::RankedStep step(const std::exception_ptr& failure) const noexcept;

  const backend::ProcessRanks* ranks_;
  const RankedCallType* type_;
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

inline constexpr RanksPart RanksPart::table{.set = &RankedSteps::set,
                                            .begin = &RankedSteps::begin,
                                            .wait_anew = &RankedSteps::wait_anew,
                                            .join = &RankedSteps::join,
                                            .combine = &RankedSteps::combine,
                                            .tell = &RankedSteps::tell,
                                            .end = &RankedSteps::end,
                                            .throw_if_late = &RankedSteps::throw_if_late};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/ranked_steps.ipp>
#endif
