// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/gather/gather.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/sharded.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/broadcast.hpp>
#include <fanout/stages/given_back.hpp>
#include <fanout/stages/no_gradients.hpp>
#include <fanout/stages/part_of.hpp>
#include <fanout/stages/procedures.hpp>
#include <fanout/stages/stage.hpp>
#include <fanout/stages/stage_calls.hpp>
#include <fanout/stages/stage_types.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// What the stages of a pipeline take and return in training, or why they cannot be trained.

/// What a shard of a stage returns if it runs this procedure.
template <class Stage, class Procedure, class... Args>
using ProcedureReturned =
    typename StageCalls<typename Stage::model_type>::template Returned<Broadcast<const Procedure&>, Args...>;

/// A tree whose leaves are reductions, so that micro-batches can be combined as they come.
template <class X>
inline constexpr bool is_reduced_tree = false;
struct IsReducedTree {
  template <class X>
  static constexpr bool is = is_reduced_tree<std::remove_cvref_t<X>>;
};
template <class X>
  requires Rebuildable<X>
inline constexpr bool is_reduced_tree<X> = all_children<IsReducedTree, X>;
template <class Rule, class X>
inline constexpr bool is_reduced_tree<WithRule<Rule, X>> = ReducesNumbers<Rule>;
template <class Rule, class T>
inline constexpr bool is_reduced_tree<ReducedMember<Rule, T>> = ReducesNumbers<Rule>;

/// The S-th of Stages, a tuple, on the way forward: it gives Y to later ones, and keeps State.
template <class Stages, std::size_t S, class X>
struct TrainForward;

template <class Stages, class X>
struct TrainResults {
  template <std::size_t S>
  using of = typename TrainForward<Stages, S, X>::Y;
  template <class Calls>
  using First = typename Calls::template Call<PartOf<X>>;
};
template <class Stages, std::size_t S, class X>
using TrainTakes = StageTakes<TrainResults<Stages, X>, S, std::tuple_element_t<S, Stages>>;

template <class Stages, std::size_t S>
using ForwardProcedure = ForwardAndSave<S + 1 == std::tuple_size_v<Stages>>;
template <class Stages, std::size_t S>
struct ForwardCalls {
  template <class... Args>
  using Call = ProcedureReturned<std::tuple_element_t<S, Stages>, ForwardProcedure<Stages, S>, Args...>;
};
template <class Stages, std::size_t S, class X>
using ForwardReturned = typename TrainTakes<Stages, S, X>::template Call<ForwardCalls<Stages, S>>;

/// True for a stage that saves nothing, as all stages before it: it goes forward only.
template <class Stages, std::size_t S, class X>
constexpr bool is_frozen() noexcept {
  if constexpr (S != 0) {
    if constexpr (!is_frozen<Stages, S - 1, X>()) return false;
  }
  return std::is_same_v<ForwardReturned<Stages, S, X>, SavesNothing>;
}
/// True if one of the first `makers` stages wants dx of the S-th one, which takes something of it.
template <class Stages, std::size_t S, class X, std::size_t makers = S>
constexpr bool gives_dx() noexcept {
  return []<std::size_t... Maker>(std::index_sequence<Maker...>) {
    return ((TrainTakes<Stages, S, X>::takes_of(Maker) && !is_frozen<Stages, Maker, X>()) || ...);
  }
  (std::make_index_sequence<makers>());
}

template <class Stages, std::size_t S, class X>
struct TrainForward {
  using Result = gathered_t<ForwardReturned<Stages, S, X>>;
  using Y = typename Result::first_type;
  using State = typename Result::second_type;
};
template <class Stages, std::size_t S, class X>
  requires(is_frozen<Stages, S, X>())
struct TrainForward<Stages, S, X> {
  struct Calls {
    template <class... Args>
    using Call = typename StageCalls<typename std::tuple_element_t<S, Stages>::model_type>::template Returned<Args...>;
  };
  using Y = gathered_t<typename TrainTakes<Stages, S, X>::template Call<Calls>>;
  using State = NoGradients;
};

/// The S-th stage on the way back. It returns {dx, gradients}, and the last stage {loss, dx, gradients}. The first one
/// that is trained returns no dx. If the stage splits backward, what it keeps for the weights takes the place of the
/// gradients.
template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct TrainBackward;

/// True if the next stage takes the whole result of the S-th one, and no other takes something of it.
template <class Stages, std::size_t S, class X>
constexpr bool gives_only_to_next() noexcept {
  return last_taker<TrainResults<Stages, X>, Stages, S>() == S + 1 && !takes_keys<std::tuple_element_t<S + 1, Stages>>;
}
template <class Stages, std::size_t S, std::size_t Taker, class X, class Targets, class Loss>
using GivenBackBy =
    GivenBack<TrainTakes<Stages, Taker, X>, S, typename TrainBackward<Stages, Taker, X, Targets, Loss>::Dx>;
/// What comes back to the S-th stage: the dx of the next one, or a dict with the keys that stages take of it.
template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct TrainDy {
  template <std::size_t... I>  // offsets of stages from S + 1
  static auto given(std::index_sequence<I...>) -> decltype(KeysOf<typename TrainForward<Stages, S, X>::Y>::back(
      std::declval<const backend::Memory&>(), RowRange(),
      std::declval<GivenBackBy<Stages, S, S + 1 + I, X, Targets, Loss>>()...));
  using type = decltype(given(std::make_index_sequence<std::tuple_size_v<Stages> - S - 1>()));
};
template <class Stages, std::size_t S, class X, class Targets, class Loss>
  requires(gives_only_to_next<Stages, S, X>())
struct TrainDy<Stages, S, X, Targets, Loss> {
  using type = typename TrainBackward<Stages, S + 1, X, Targets, Loss>::Dx;
};

/// What a shard returns on the way back.
template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct BackReturned {
  using Procedure = Backward<gives_dx<Stages, S, X>()>;
  using type = ProcedureReturned<std::tuple_element_t<S, Stages>, Procedure, typename TrainForward<Stages, S, X>::State,
                                 typename TrainDy<Stages, S, X, Targets, Loss>::type>;
  static constexpr std::size_t dx_at = 0;
};
template <class Stages, std::size_t S, class X, class Targets, class Loss>
  requires(S + 1 == std::tuple_size_v<Stages>)
struct BackReturned<Stages, S, X, Targets, Loss> {
  using Procedure = LossAndBackward<Loss, gives_dx<Stages, S, X>()>;
  using type = ProcedureReturned<std::tuple_element_t<S, Stages>, Procedure, typename TrainForward<Stages, S, X>::State,
                                 typename TrainForward<Stages, S, X>::Y, PartOf<Targets>>;
  static constexpr std::size_t dx_at = 1;
};

template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct TrainBackward {
  using Returned = BackReturned<Stages, S, X, Targets, Loss>;
  using Procedure = typename Returned::Procedure;
  using Result = gathered_t<typename Returned::type>;
  static constexpr std::size_t dx_at = Returned::dx_at;
  static constexpr std::size_t end_at = dx_at + (gives_dx<Stages, S, X>() ? 1 : 0);
  using Dx = std::tuple_element_t<dx_at, Result>;  // of the first stage: its end, since nobody takes its dx
  using End = std::tuple_element_t<end_at, Result>;
  static constexpr bool splits = is_sharded<End>;
};
template <class Stages, std::size_t S, class X, class Targets, class Loss>
  requires(S + 1 != std::tuple_size_v<Stages> && is_frozen<Stages, S, X>())
struct TrainBackward<Stages, S, X, Targets, Loss> {
  using Dx = NoGradients;
  using End = NoGradients;
  static constexpr bool splits = false;
};

/// The gradients of the S-th stage: the end of the way back, or what backward_weights() returns.
template <class Back, class Stage>
struct TrainGradients {
  using type = NoGradients;
};
template <class Back, class Stage>
  requires(!Back::splits && requires { Back::end_at; })
struct TrainGradients<Back, Stage> {
  using Returned = std::tuple_element_t<Back::end_at, typename Back::Returned::type>;
  using type = typename Back::End;
};
template <class Back, class Stage>
  requires(Back::splits)
struct TrainGradients<Back, Stage> {
  using Returned = ProcedureReturned<Stage, BackwardWeights, typename Back::End>;
  using type = gathered_t<Returned>;
};

/// Why the stages of a pipeline cannot be trained.
enum class Untrainable {
  no,
  has_slices,
  key_is_not_made,
  saves_nothing,
  gives_to_nobody,
  goes_not_back,
  lacks_key_in_dx,
  is_not_reduced
};

/// True if a later stage takes something of the S-th one.
template <class Stages, std::size_t S, class X>
constexpr bool result_is_taken() noexcept {
  return last_taker<TrainResults<Stages, X>, Stages, S>() != S + 1 || TrainTakes<Stages, S + 1, X>::takes_of(S);
}

/// True if later stages take something of each stage that is trained.
template <class Stages, class X, std::size_t... S>
constexpr bool all_are_taken(std::index_sequence<S...>) noexcept {
  return ((is_frozen<Stages, S, X>() || result_is_taken<Stages, S, X>()) && ...);
}

/// True if dx of the S-th stage has a value for each key that it takes of trained stages.
template <class Stages, std::size_t S, class X, class Dx>
constexpr bool has_keys_in_dx() noexcept {
  bool found = true;
  if constexpr (takes_keys<std::tuple_element_t<S, Stages>>) {
    using Takes = TrainTakes<Stages, S, X>;
    Takes::for_each_key([&found]<class K, std::size_t Maker>(K, std::integral_constant<std::size_t, Maker>) {
      if (!is_frozen<Stages, Maker, X>() && !has_key<Dx, K> && !Takes::takes_one_key) found = false;
    });
  }
  return found;
}

template <class Stages, std::size_t S, class X, class Targets, class Loss>
constexpr Untrainable untrainable_back() noexcept {
  using Returned = typename BackReturned<Stages, S, X, Targets, Loss>::type;
  if constexpr (std::is_same_v<Returned, GoesNotBack>) {
    return Untrainable::goes_not_back;
  } else {
    using Back = TrainBackward<Stages, S, X, Targets, Loss>;
    using Gradients = typename TrainGradients<Back, std::tuple_element_t<S, Stages>>::Returned;
    constexpr bool is_last = S + 1 == std::tuple_size_v<Stages>;
    if constexpr (std::is_same_v<Gradients, GoesNotBack>) {
      return Untrainable::goes_not_back;
    } else if constexpr (!is_reduced_tree<Gradients> ||
                         (is_last && !is_reduced_tree<std::tuple_element_t<0, Returned>>)) {
      return Untrainable::is_not_reduced;
    } else if constexpr (!has_keys_in_dx<Stages, S, X, typename Back::Dx>()) {
      return Untrainable::lacks_key_in_dx;
    } else if constexpr (S != 0) {
      if constexpr (!is_frozen<Stages, S - 1, X>()) {
        return untrainable_back<Stages, S - 1, X, Targets, Loss>();
      } else {
        return Untrainable::no;
      }
    } else {
      return Untrainable::no;
    }
  }
}

/// The first reason from the S-th stage on. The types of what comes after it are not known.
template <class Stages, std::size_t S, class X, class Targets, class Loss>
constexpr Untrainable untrainable() noexcept {
  if constexpr (StageCalls<typename std::tuple_element_t<S, Stages>::model_type>::is_sliced) {
    return Untrainable::has_slices;
  } else if constexpr (!TrainTakes<Stages, S, X>::finds_keys) {
    return Untrainable::key_is_not_made;
  } else if constexpr (std::is_same_v<ForwardReturned<Stages, S, X>, SavesNothing> &&
                       !(is_frozen<Stages, S, X>() && S + 1 != std::tuple_size_v<Stages>)) {
    return Untrainable::saves_nothing;
  } else if constexpr (S + 1 != std::tuple_size_v<Stages>) {
    return untrainable<Stages, S + 1, X, Targets, Loss>();
  } else if constexpr (!all_are_taken<Stages, X>(std::make_index_sequence<S>())) {
    return Untrainable::gives_to_nobody;
  } else {
    return untrainable_back<Stages, S, X, Targets, Loss>();
  }
}

}}}  // namespace fanout::v0::detail
