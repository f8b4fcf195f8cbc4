// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <tuple>
#include <type_traits>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/call_outputs.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/shard_remains.hpp>
#include <fanout/call/shard_slots.hpp>
#include <fanout/context/shard_context.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_clock.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/replica/forward_result.hpp>
#include <fanout/replica/result_mover.hpp>
#include <fanout/replica/settled_if_thrown.hpp>
#include <fanout/scatter/batch_shape.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/floating_point_modes.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The read-only state that the threads of all shards of a call share. `body(i)` runs the i-th shard on this thread and
/// fills its slot. `Call::Taken` makes the pieces of a shard. `Call::Runners::visit(device, f)` calls `f(runner)`,
/// where the runner, for example a Replica, runs the shard `f.shard`.
///
/// Another core fetches each cache line that is read here from the caller's core. That takes longer than all else in a
/// call. So there are few lines, and all are asked for at once. If all arguments are borrowed, the references are
/// stored here, otherwise in what the caller keeps.
template <class Call, class... Args>
class alignas(cache_line) ShardBody {
  using R = typename Call::R;
  using Pieces = typename Call::Taken::type;
  using States = typename Call::States;
  using Arguments =
      std::conditional_t<(std::is_reference_v<Args> && ...), std::tuple<Args...>, const std::tuple<Args...>&>;

 public:
  /// Borrows all of these. `is_plain`: see CallOutputs::make_room().
  ShardBody(CallOutputs<R>& outputs, bool is_plain, const typename Call::Runners& runners,
            const ShardInputs<Args...>& inputs, const CallScope* caller, const States& states) noexcept
      : outputs_(outputs),
        cells_(outputs.cells()),
        is_plain_(is_plain),
        runners_(runners),
        plan_(inputs.plan.begin()),
        caller_(caller),
        arguments_(inputs.arguments),
        axis_(inputs.axis),
        states_(states) {
    for (std::size_t i = 0; i < inputs.plan.size() && i < few; ++i) first_.elements[i] = plan_[i];
  }

  void operator()(std::size_t i) const noexcept {
    __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + cache_line);
    ShardCell<R>& cell = cells_[i];
    const Shard& shard = i < few ? first_.elements[i] : plan_[i];
    std::size_t device = shard.device;
    if (is_plain_) {
      cell.make();
    } else {
      device = outputs_.begin_shard(i, device, cell.slot());
    }
    try {
      runners_.visit(device, OnRunner{*this, i, shard.rows, cell.slot()});
      outputs_.note_success(cell.slot());
    } catch (...) {
      outputs_.note_exception(cell.slot());
    }
    if (!is_plain_) outputs_.note_end(i, cell.slot());
  }

  bool is_plain() const noexcept { return is_plain_; }
  /// Call this before run_on(), if a call that was begun as plain has made all slots since then.
  void slots_are_made() noexcept { is_plain_ = false; }

  /// Runs the i-th shard on another device than the planned one. Returns false if the device failed, or has no memory.
  /// The slots must have been made.
  [[gnu::cold, gnu::noinline]] bool run_on(std::size_t i, std::size_t device) const noexcept {
    ShardSlot<R>& slot = cells_[i].slot();
    slot.moved_to = device;
    const FloatingPointScope scope;   // what forward leaves behind is not for the next shard of this thread
    const ShardRunner runner(*this);  // or operator() would be compiled twice, or not be inlined where calls need it
    runner.run(this, i);
    if (slot.failure == nullptr) return true;
    slot.scratch.release();  // the device may need it for its next shard; see SettledIfThrown
    return !slot.template failed_with<DeviceError>() && !slot.template failed_with<OutOfMemory>();
  }

  /// See batch_shape().
  std::uint64_t shape() const { return batch_shape(axis_, arguments_); }

  DoneFlags done_flags() const noexcept { return {cells_->ended(), sizeof(*cells_)}; }
  void tell_late() const noexcept { outputs_.tell_late(); }

 private:
  static constexpr std::size_t few = 2;

  /// Runs a shard on its runner.
  struct OnRunner {
    const ShardBody& body;
    std::size_t shard;
    const RowRange& rows;
    ShardSlot<R>& slot;

    template <class Runner>
    void operator()(const Runner& runner) const {
      const auto& device = runner.device();
      using D = std::remove_cvref_t<decltype(device)>;
      [[maybe_unused]] const auto entered = device.enter();
      [[maybe_unused]] const SettledIfThrown<D> settled{device, slot};
      [[maybe_unused]] const auto state = body.states_.enter();
      ContextOf<Runner> ctx(device, body.outputs_, shard, rows, slot.scratch);
      Pieces pieces = Call::Taken::make(body.arguments_, {.shard = shard,
                                                          .rows = body.outputs_.place->in_arguments(rows),
                                                          .memory = device.memory(),
                                                          .scratch = &slot.scratch,
                                                          .axis = body.axis_,
                                                          .first_row = body.outputs_.place->first_argument()});
      if constexpr (requires { entered.inputs_are_made(); }) entered.inputs_are_made();
      if constexpr (requires { runner.check_memory(); }) runner.check_memory();
      if (!body.is_plain_) body.outputs_.forward_begins(shard);
      try {
        slot.fill(ForwardPieces<Pieces>(), runner, body.caller_, ctx, pieces);
        if constexpr (requires { device.ran(rows.size()); }) device.ran(rows.size());
        if constexpr (HasOwnMemory<D> && Call::may_be_dealt) {
          if (body.outputs_.plan.runs_in_turns()) [[unlikely]]
            body.release_early(device, rows, slot);
        }
        // Where the work has been done when forward returns, that is the end of the shard.
        if constexpr (!requires { requires noexcept(device.synchronize()); }) {
          if (!body.is_plain_) body.outputs_.forward_returned(shard);
        }
        if constexpr (requires { backend::Completion(device.completion()); }) {
          // A device's own clock needs a completion.
          if (HasOwnClock<D> || !body.outputs_.waits_for_devices()) {
            if constexpr (HasOwnMemory<D> && has_rows_to_send<R>()) body.send_outputs(device, rows, slot);
            slot.completion = device.completion();
            return;
          }
        }
        device.synchronize();
        if constexpr (requires { backend::Completion(device.completion()); }) {
          if (const auto failure = body.outputs_.rendezvous.failure(shard)) std::rethrow_exception(failure);
        }
      } catch (...) {
        slot.failed_in_forward = true;
        throw;
      }
    }
  };

  /// Sends the result, and releases the shard's memory on the device: while the copies run, instead of after the join.
  /// Does nothing if the call waits for its devices. A measured call waits, since it reports the time of gathering
  /// apart.
  template <class D>
  void send_outputs(const D& device, const RowRange& rows, ShardSlot<R>& slot) const {
    CallFrame& call = outputs_;
    if (!call.settings.gathers || axis_ != 0 || call.waits_for_devices()) return;
    ResultMover mover(call, rows, slot.scratch);
    mover.send(slot.value());
    mover.template release_memory_in<R>(backend::Memory(device.memory()).space);
  }

  /// Frees the device's memory for its next shard, as far as the result allows.
  template <class D>
  [[gnu::cold, gnu::noinline]] void release_early(const D& device, const RowRange& rows, ShardSlot<R>& slot) const {
    device.synchronize();
    ResultMover mover(outputs_, rows, slot.scratch);
    if constexpr (std::is_void_v<R>) {
      mover.release();
    } else if constexpr (can_leave_device<R>()) {
      try {
        mover.move(slot.value());
      } catch (const OutOfMemory&) {
        slot.results_do_not_fit = !(outputs_.target.space == backend::Memory(device.memory()).space);
        throw;
      }
      mover.release();
    }
  }

  CallOutputs<R>& outputs_;
  ShardCell<R>* cells_;
  bool is_plain_;
  typename Call::Runners runners_;
  const Shard* plan_;
  const CallScope* caller_;
  Arguments arguments_;
  int axis_;
  [[no_unique_address]] std::conditional_t<std::is_empty_v<States>, States, const States&> states_;
  FewElements<Shard, few> first_;  // of the plan, which then need not be read
};

}}}  // namespace fanout::v0::detail
