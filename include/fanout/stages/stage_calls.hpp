// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/parallel/model_state.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/replica/replica_call.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/stages/micro_batch.hpp>
#include <fanout/stages/part_of.hpp>
#include <fanout/stages/stage.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The calls of one stage for the micro-batches of one batch. They have one number, and no update() comes between them.
/// Borrows the model.
template <class Model>
class StageCalls;

template <class M, class Source>
class StageCalls<ParallelModel<M, Source>> {
  using Model = ParallelModel<M, Source>;

 public:
  /// True if each device has its part of a field, so that it needs all rows of a micro-batch.
  static constexpr bool is_sliced = has_slices<typename Model::AllReplicas::model_type>;
  template <class X>
  using Input = std::conditional_t<is_sliced, PartForEach<X>, X>;
  /// The types of a call with these arguments.
  template <class... Args>
  using Call = CallOfReplicas<typename Model::AllReplicas, ShardInputs<const Input<Args>&...>>;
  /// What a shard returns.
  template <class... Args>
  using Returned = typename Call<Args...>::R;

  explicit StageCalls(const Model& model) : model_(model) {}

  /// Throws as a call does that begins.
  void enter(CallOrder order) { WholeBatch::enter(entered_, *model_.state_, order); }
  /// Lets update() go on, when all calls have ended.
  void leave() noexcept { entered_.leave(); }
  /// Call these for an asynchronous call. The first one may throw std::bad_alloc. The second one lists the call among
  /// those of the model, and leaves the lock of the model to it.
  void make_room_for(AsyncCall& call) { call.keep_in(model_.state_->pending.calls()); }
  void leave_to(AsyncCall& call) noexcept {
    entered_.leave_to_others();
    call.calls()->begin_call(call, model_.state_->mutex);
  }

  /// Calls the model. Results are gathered in this memory.
  template <class... Args>
  auto call(MicroBatch batch, const backend::Memory& memory, const Args&... args) const {
    batch.call_number = entered_.number();
    const CallRequest request{.memory = &memory};
    if constexpr (is_sliced) {
      // The results of its devices are one result of the micro-batch, which has all of its rows.
      batch.is_for_each = true;
      batch.reductions = nullptr;
      const RowRange rows = batch.takes_whole ? batch.rows : RowRange{0, batch.rows.size()};
      const std::tuple<PartForEach<Args>...> inputs{{args, rows}...};
      return std::apply([&](const auto&... input) { return model_.run(batch, request, input...); }, inputs);
    } else {
      return model_.run(batch, request, args...);
    }
  }

  /// Throws InvalidArgument if the model, the n-th stage, cannot be trained on micro-batches of so many rows.
  void check_trainable(std::size_t rows, std::size_t n) const {
    check_trained(model_.state_->options, model_.plan(rows).is_dealt(), n);
  }
  /// True if the calls are measured for the report of the model.
  bool is_measured() const noexcept { return static_cast<bool>(model_.state_->measured); }

  /// The device whose thread makes the calls.
  const DeviceEntry& main_device() const noexcept { return model_.state_->replicas.table()[0]; }
  /// The memory for the results of the stage before.
  const backend::Memory& memory() const noexcept { return main_device().memory; }
  /// The memory for the results of the pipeline, if this is the last stage.
  const backend::Memory& target() const noexcept { return model_.state_->settings.target; }
  const DeviceId* devices() const noexcept { return model_.devices().ids().data(); }
  int axis() const noexcept { return model_.state_->settings.axis; }
  const DeviceTable* team() const noexcept { return model_.state_->settings.team; }

 private:
  const Model& model_;
  EnteredModel entered_;
};

}}}  // namespace fanout::v0::detail
