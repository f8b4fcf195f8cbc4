// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <fanout/call/call_order.hpp>
#include <fanout/call/call_steps.hpp>
#include <fanout/call/caller_state.hpp>
#include <fanout/context/shard_context.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/replica/forward_result.hpp>
#include <fanout/replica/held_fields.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/replica/result_mover.hpp>
#include <fanout/replica/strided_pieces.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/scatter/shard_inputs.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The pieces that the replicas of a model receive. The replicas on the first kind of devices decide for all.
template <class Inputs, class First, class... Others>
struct PiecesTaken : PiecesFor<typename First::model_type, ContextOf<First>, Inputs> {};

/// The types and rules of a call of replicas with these inputs.
template <class AnyReplicas, class Inputs>
struct CallOfReplicas;
template <class M, class... Ds, class... Args>
struct CallOfReplicas<Replicas<M, Ds...>, ShardInputs<Args...>> {
  using Inputs = ShardInputs<Args...>;
  using Taken = PiecesTaken<Inputs, Replica<M, Ds>...>;
  using Forward = ForwardResult<typename Taken::type, Replica<M, Ds>...>;
  using R = typename Forward::type;  ///< what a shard returns
  using States = CallerStates<typename Replica<M, Ds>::model_type...>;
  using Runners = const Replicas<M, Ds...>&;
  static constexpr bool changes = !(ForwardPieces<typename Taken::type>::template is_const<Replica<M, Ds>> && ...);
  using Fields = HeldFields<Replicas<M, Ds...>, changes>;
  static constexpr CallOrder order() { return Forward::order(); }
  static bool shards_may_meet() noexcept {
    // In a function: after one that fails in the class, clang takes the class for incomplete and refuses its uses, too.
    static_assert(!is_sliced || !(ArrayLeaf<std::remove_cvref_t<Args>> || ...),
                  "fanout: an array is split by rows, but this model has slices, so each of its devices needs all "
                  "rows; pass broadcast(x), or what sharded(y) has left on the same devices");
    return Forward::shards_may_meet();
  }

  /// What the call exchanges with other processes, if there are any: nothing if `forward` asks for no context, and
  /// nothing is combined.
  static constexpr bool combines_fields = changes && has_combined_fields<typename Replicas<M, Ds...>::model_type>;
  using Ranked = std::conditional_t<Forward::takes_context() || combines_fields || has_reductions<R>,
                                    StepsOf<M, R, combines_fields>, NoSteps>;

  /// True if each device has its part of a field.
  static constexpr bool is_sliced = has_slices<typename Replicas<M, Ds...>::model_type>;
  /// True if any device may run any shard: what a replica does never depends on what it did before.
  static constexpr bool may_be_dealt = order() != CallOrder::changes && !is_sliced;

  /// See CallTypes.
  static const char* refusal(Again how) noexcept {
    if (how == Again::with_single_rows) return refusal_of_single_rows();
    if constexpr (is_sliced) {
      return "since each device has its part of a Slice";
    } else if constexpr (!may_be_dealt) {
      return "since forward is not const, or may change its replica";
    } else if constexpr (has_inout<Args...>) {
      return "since an argument is inout()";
    } else {
      if (shards_may_meet()) return "since forward has collectives";
      return has_sharded<Args...> && how == Again::with_fewer_rows ? "since an argument is sharded" : nullptr;
    }
  }
  static const char* refusal_of_single_rows() noexcept {
    if constexpr (std::is_void_v<R>) {
      return "since a single row does not fit";
    } else {
      return can_leave_device<R>() ? "since a single row does not fit"
                                   : "since results of this type stay in the memory of the device";
    }
  }

  /// If fields are combined after a call, no part of the next call may run before that. So such an asynchronous call is
  /// one task, which makes the whole call.
  static constexpr bool is_one_task = has_combined_fields<typename Replicas<M, Ds...>::model_type>;

  /// True if its shards may wait for each other while each holds a replica. If two such calls had different orders on
  /// two replicas, both would wait forever. So they are kept in order, as asynchronous calls are.
  static constexpr bool may_need_order() {
    if constexpr (order() == CallOrder::changes && !is_one_task) {
      return Forward::takes_context();
    } else {
      return false;
    }
  }
};

}}}  // namespace fanout::v0::detail
