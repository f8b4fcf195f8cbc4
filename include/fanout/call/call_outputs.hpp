// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_steps.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/shard_remains.hpp>
#include <fanout/call/shard_slots.hpp>
#include <fanout/call/timeout.hpp>
#include <fanout/collective/direct_sums.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The slots of the shards of one call, in row order, and what happens once all have ended. A call without failures,
/// lateness or pending device work checks one flag. Borrows what CallFrame borrows.
///
/// The order is: begin(); make_room() or make_slots(); for each shard, on any thread, note_success() or
/// note_exception(), then note_end(); all_ended(); check_deadline(); gather().
template <class R>
class CallOutputs : public CallFrame {
 public:
  CallOutputs(const Plan& by, const CallSettings& with, const CallRequest& asked, const DeviceId* of_set,
              bool shards_may_meet)
      : CallFrame(by, with, asked, of_set, shards_may_meet), slots_(by.size()) {
    remains_are(slots_.cells()->slot(), sizeof(ShardCell<R>));
  }

  /// Call this first if shards run one at a time: others may read a slot before its shard has begun. Throws
  /// std::bad_alloc.
  [[gnu::cold, gnu::noinline]] void make_slots() {
    ends_are_noted();
    slots_.make_all();
  }

  /// Call this first if all shards run at once. Returns true if nothing reads a slot before all shards have ended, and
  /// nothing notes when they begin and end. Then the thread that runs a shard makes its slot, and must not call
  /// begin_shard() and note_end(). Throws std::bad_alloc.
  bool make_room() {
    is_plain_ = !has_deadline() && !rendezvous.notes_ends() && clock == nullptr;
    if (!is_plain_) make_slots();
    return is_plain_;
  }

  ShardCell<R>* cells() noexcept { return slots_.cells(); }
  const ShardSlot<R>& operator[](std::size_t i) const noexcept { return slots_[i]; }

  /// Call this when all shards have ended, in the process in which they began. Waits for pending device work. Runs
  /// shards again, and returns false if the call must be made again: see CallFrame::check_ends(). An exception from
  /// before a `forward` is thrown unchanged. Exceptions of `forward` are thrown as one ReplicaError. With
  /// `rethrow_single`, a single one is thrown unchanged.
  [[nodiscard]] bool all_ended(const TypedCall& call) {
    if (is_plain_) slots_.all_are_made(!std::is_trivially_destructible_v<Value> || holds());
    return check_ends(call);
  }

  /// Call this if the call is made again, after its plan was changed. Then it goes on with make_room(). Throws
  /// std::bad_alloc.
  [[gnu::cold, gnu::noinline]] void again() {
    slots_.resize(plan.size());
    remains_are(slots_.cells()->slot(), sizeof(ShardCell<R>));
    CallFrame::again();
  }

  /// Empties the slot of a shard that runs again. It is told late once.
  void renew(std::size_t i) noexcept {
    const bool told_late = slots_[i].told_late;
    slots_[i].~ShardSlot();
    slots_.cells()[i].make();
    slots_[i].runs_as_planned();
    slots_[i].told_late = told_late;
  }

  /// Call this next. If shards were late, throws Timeout with the results of the others.
  void check_deadline() { throw_if_late(keep_results, this); }

  /// Gathers the results. Moves from the shards' values, so it may be called once.
  gathered_t<R> gather() {
    NoSteps alone;
    return gather(alone);
  }
  /// The same, and combines reductions over the processes that make the call.
  template <class Ranked>
  gathered_t<R> gather(Ranked& ranked) {
    if constexpr (!std::is_void_v<R>) {
      try {
        return gather_all(ranked);
      } catch (const OutOfMemory& error) {
        say_why_not_again(error);
        throw;
      }
    }
  }

 private:
  [[gnu::cold]] static void keep_results([[maybe_unused]] void* outputs, [[maybe_unused]] const Plan& in_time,
                                         [[maybe_unused]] Timeout& timeout) {
    using finding = detail::find_ungatherable_t<rules::Concatenate, R, detail::LeafAt<>>;
    if constexpr (!std::is_void_v<R> && std::is_void_v<finding>) {
      timeout.keep_results([&] { return static_cast<CallOutputs*>(outputs)->gather_in_time(in_time); });
    }
  }

  template <class Ranked>
  gathered_t<R> gather_all(Ranked& ranked) {
    if constexpr (has_reductions<R> && Gatherable<rules::Concatenate, R>) {
      return gather_reduced(ranked);
    } else {
      ShardResults<R> pieces = this->pieces();
      return gather_and_wait(pieces, where_to());
    }
  }

  template <class Ranked>
  gathered_t<R> gather_reduced([[maybe_unused]] Ranked& ranked) {
    ShardResults<R> pieces = this->pieces();
    DirectSums sums(settings.collectives, as_run(), devices);
    GatherTarget to = where_to();
    to.sums = &sums;
    gathered_t<R> result = gather_and_wait(pieces, to);
    if constexpr (!std::is_same_v<Ranked, NoSteps>) {
      ranked.combine([&](const auto& f) { visit_reduced<rules::Concatenate>(pieces[0], result, output_root, f); });
    }
    return result;
  }

  ShardResults<R> pieces() {
    return {slots_.size(), true, [this](std::size_t i) -> const R& { return slots_[i].value(); }};
  }

  GatherTarget where_to() {
    return {.plan = as_run(),
            .devices = devices,
            .target = target,
            .axis = settings.axis,
            .team = settings.team,
            .outputs = &outputs,
            .batch = place};
  }

  gathered_t<R> gather_in_time(const Plan& in_time) {
    ShardResults<R> pieces(in_time.size(), true);
    std::size_t next = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!remains(i).lateness.is_late()) pieces.set(next++, slots_[i].value());
    }
    return gather_and_wait(pieces, {in_time, devices, target, settings.axis});
  }

  using Value = std::conditional_t<std::is_void_v<R>, bool, R>;

  bool is_plain_ = false;  // see make_room()
  ShardSlots<R> slots_;
};

}}}  // namespace fanout::v0::detail
