// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <fanout/base/any_function.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/base/with_part.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/call/deadline_part.hpp>
#include <fanout/call/deal_part.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/ranked_steps.hpp>
#include <fanout/call/recovery_part.hpp>
#include <fanout/fwd.hpp>
#include <fanout/measure/measured_calls.hpp>
#include <fanout/measure/progress.hpp>
#include <fanout/parallel/manual_seed.hpp>
#include <fanout/plan/any_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// True for policies whose plans are never dealt and never run in turns.
template <class S>
inline constexpr bool plans_are_ordinary = std::same_as<S, EvenSplit> || std::same_as<S, ChunkSplit> ||
                                           std::same_as<S, WeightedSplit> || std::same_as<S, MeasuredSplit>;

/// The split policy of a model, and the parts of calls that it needs: see WithPart.
class SplitOption : public AnySplit {
 public:
  SplitOption() = default;
  template <class S>
    requires(!std::derived_from<std::remove_cvref_t<S>, SplitOption> && std::convertible_to<S, AnySplit>)
  SplitOption(S&& split)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): .split = EvenSplit{}
      : AnySplit(std::forward<S>(split)) {
    using Policy = std::remove_cvref_t<S>;
    constexpr bool is_unknown = std::same_as<Policy, AnySplit>;
    if constexpr (ObservesCalls<Policy> || is_unknown) measures_ = &MeasurePart::table;
    if constexpr (!plans_are_ordinary<Policy>) deals_ = &DealPart::table;
    if constexpr (!std::same_as<Policy, EvenSplit>) check_ = &check_plan;
  }

  /// Throws InvalidArgument if the policy has made no valid plan. The plans of EvenSplit need no check.
  void check(const Plan& plan, std::size_t rows, std::size_t devices) const {
    if (check_ != nullptr) check_(plan, rows, devices);
  }

  const MeasurePart* measures() const noexcept { return measures_; }
  const DealPart* deals() const noexcept { return deals_; }

 private:
  const MeasurePart* measures_ = nullptr;
  const DealPart* deals_ = nullptr;
  void (*check_)(const Plan& plan, std::size_t rows, std::size_t devices) = nullptr;
};

}  // namespace detail

/// What happens to shards whose device fails.
struct Retry {
  /// How many times a shard is run again, on another device each time, after it has thrown a DeviceError.
  detail::WithPart<int, detail::RecoveryPart> times = {};
};

/// Options of a ParallelModel. Each has a default: `ParallelModel{m, devices, Options{.seed = 7}}`. Some options need a
/// part of the library. Programs that do not set them have none of its code.
struct Options {
  /// The device in whose memory results are gathered; by default the main device. Any host device means host memory.
  /// ParallelModel::into() gathers where its destination is.
  std::optional<DeviceId> output = {};
  /// The axis on which arrays are split and concatenated; -1 is the last one. split<Axis>(x) and concat<Axis>(x) choose
  /// it for one array.
  int axis = 0;
  /// The split policy: which device gets which rows.
  detail::SplitOption split = {};
  /// True to measure all calls: see ParallelModel::report(). A split policy that observes calls measures them, too. It
  /// costs less than 100 ns a shard.
  detail::WithPart<bool, detail::MeasurePart> measure = {};
  /// Called after each shard, by the thread that ran it, so by several threads at once: for calls that take long. With
  /// DealtSplit, a call has many shards. Its exceptions are ignored. A model with it measures its calls.
  detail::WithPart<detail::AnyFunction<void(const Progress&)>, detail::MeasurePart> progress = {};
  /// The seed of ctx.random(). By default that of the process when these options are made: see manual_seed().
  std::uint64_t seed = detail::process_seed.load(detail::MemoryOrder::relaxed);
  /// If true and exactly one replica throws in a call, the call throws that exception instead of a ReplicaError.
  bool rethrow_single = false;
  /// How long a call may take: `.deadline = std::chrono::milliseconds(50)`. By default there is no deadline. After it,
  /// ctx.stop_requested() is true. The call still waits for all shards, and throws Timeout if one was late. If several
  /// ranks make the call, it waits for other ranks only until then: all of them set a deadline, or none. Must not be
  /// negative.
  detail::WithPart<Duration, detail::DeadlinePart> deadline = detail::Unset{Duration::forever()};
  /// Called once for each late shard, by the thread that waits for the call: at the deadline, or after a shard that
  /// this thread runs itself. Several threads may call it at once if they call the model. Its exceptions are ignored.
  detail::AnyFunction<void(const LateShard&)> late = {};
  /// `.retry = Retry{.times = 1}`: a shard that throws a DeviceError runs again, on another device of the model. Only
  /// if `forward` is const and has no collectives, and no argument has an inout() in it; otherwise the ReplicaError
  /// says why not. One thread then makes an asynchronous call as a whole: that of the main device, or one that waits
  /// for the result. A device that has failed twice gets no rows in later calls, as long as there is another one, until
  /// ParallelModel::readmit(). By default no shard runs again, and no failure is counted.
  Retry retry = {};
  /// True: a call that ran out of a device's memory is made again. That device then gets half as many rows at a time.
  /// Its share of the batch stays the same: it runs its rows in several shards, one after the other. Each of these
  /// gives its inputs, outputs and scratch back before the next one begins, unless `forward` returns something else
  /// than outputs, tensors, numbers, and tuples, dicts or structs of these. From then on, no more rows are tried there
  /// with arguments of that shape. All tries have one number of the random numbers, and one deadline. Only for calls
  /// that `retry` can run again, and not with sharded arguments or several ranks; otherwise the ReplicaError says why
  /// not. So does the OutOfMemory of a call whose results could not be gathered, which is not made again either.
  detail::WithPart<bool, detail::RecoveryPart> shrink_on_out_of_memory = {};
  /// The collectives of ctx.communicator() for arrays in device memory, and the sums of psum() and pmean() of such
  /// arrays, for example by nccl_collectives(); by default through host memory.
  const backend::CollectiveTransport* collectives = nullptr;
  /// The processes that call the model together, each with its own rows: `.ranks = ranks` with the mpi::Ranks `ranks`.
  /// Then ctx.rows(), ctx.random(), reductions and combined fields count over all of them. By default, this process is
  /// alone. Must live as long as the model.
  detail::WithPart<const backend::ProcessRanks*, detail::RanksPart> ranks = {};
};

}}  // namespace fanout::v0
