// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/call/call_order.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/context/shard_context.hpp>
#include <fanout/device/device.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/replica/placed_model.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// The type that `forward` returns for the pieces of a shard.

namespace detail {

/// The context that the `forward` of a replica receives.
template <class AnyReplica>
using ContextOf = ShardContext<std::remove_cvref_t<decltype(std::declval<const AnyReplica&>().device())>,
                               typename AnyReplica::model_type>;

/// Calls the `forward` of a replica with a tuple of pieces.
template <class Pieces, class Indices = std::make_index_sequence<std::tuple_size_v<Pieces>>>
struct ForwardPieces;
template <class... P, std::size_t... I>
struct ForwardPieces<std::tuple<P...>, std::index_sequence<I...>> {
  /// True if the replica's `forward` is const for these pieces.
  template <class AnyReplica>
  static constexpr bool is_const = ConstForward<typename AnyReplica::model_type, ContextOf<AnyReplica>, P...>;

  template <class AnyReplica>
  static constexpr CallOrder order = AnyReplica::template order<ContextOf<AnyReplica>, P...>;

  template <class AnyReplica>
  static constexpr bool takes_context() {
    constexpr ForwardForm form = forward_form<typename AnyReplica::model_type, ContextOf<AnyReplica>, P...>();
    return form == ForwardForm::forward_with_context || form == ForwardForm::call_with_context ||
           form == ForwardForm::procedure;
  }

  template <class AnyReplica, class Ctx>
  auto operator()(const AnyReplica& replica, const CallScope* caller, Ctx& ctx, std::tuple<P...>& pieces) const {
    return replica.run(caller, ctx, std::forward<P>(std::get<I>(pieces))...);
  }
};

// The static_asserts are in functions. After one that fails in a class, clang finds no types in the class, and reports
// more errors.

/// The type that `forward` returns for these pieces on replicas of one model on different kinds of devices. If the
/// replicas disagree, it is void. void takes every result, so the error here is the only one.
template <class Pieces, class First, class... Others>
struct ForwardResult {
  template <class AnyReplica>
  using of = decltype(ForwardPieces<Pieces>()(std::declval<const AnyReplica&>(), nullptr,
                                              std::declval<ContextOf<AnyReplica>&>(), std::declval<Pieces&>()));
  static auto find() {
    constexpr bool found = (std::is_same_v<of<First>, of<Others>> && ...);
    static_assert(found, "fanout: forward returns different types on different kinds of devices");
    return std::type_identity<std::conditional_t<found, of<First>, void>>{};
  }
  using type = typename decltype(find())::type;

  /// The order of a call: the strictest one of its replicas.
  static constexpr CallOrder order() {
    CallOrder latest = CallOrder::any;
    for (const CallOrder order :
         {ForwardPieces<Pieces>::template order<First>, ForwardPieces<Pieces>::template order<Others>...}) {
      latest = order > latest ? order : latest;
    }
    return latest;
  }

  /// True if `forward` receives a context, and so can wait for other shards.
  static constexpr bool takes_context() {
    using AllPieces = ForwardPieces<Pieces>;
    return AllPieces::template takes_context<First>() || (AllPieces::template takes_context<Others>() || ...);
  }

  /// True if `forward` calls `ctx.communicator()` in its code, so that shards may wait for each other.
  static bool shards_may_meet() noexcept {
    if constexpr (takes_context()) {
      return shards_meet_in<ContextOf<First>>.load(MemoryOrder::relaxed) ||
             (shards_meet_in<ContextOf<Others>>.load(MemoryOrder::relaxed) || ...);
    } else {
      return false;
    }
  }
};

/// The type that each of several models returns for these pieces. void if they disagree, as above.
template <class Models, class Pieces, class... Ds>
struct ForwardResults {
  template <class M>
  using forward_of = ForwardResult<Pieces, PlacedModel<std::remove_cvref_t<M>, Ds>...>;
  template <class M>
  using of = typename forward_of<M>::type;

  template <class First, class... Others>
  struct common {
    static constexpr bool found = (std::is_same_v<First, Others> && ...);
    static constexpr bool refused = std::is_same_v<First, NotRunnable> || (std::is_same_v<Others, NotRunnable> || ...);
    using type = std::conditional_t<found, First, void>;
  };

  template <std::size_t... I>
  static common<of<std::tuple_element_t<I, Models>>...> find(std::index_sequence<I...>);
  static auto find() {
    if constexpr (TupleNode<Models>) {
      using Found = decltype(find(std::make_index_sequence<std::tuple_size_v<Models>>{}));
      static_assert(Found::found || Found::refused, "fanout: models that are applied together return one type");
      return Found{};
    } else {
      return common<of<decltype(std::declval<const Models&>()[0])>>{};
    }
  }
  using type = typename decltype(find())::type;

  /// The same for the `forward` of any of the models.
  template <std::size_t... I>
  static bool shards_may_meet(std::index_sequence<I...>) noexcept {
    return (forward_of<std::tuple_element_t<I, Models>>::shards_may_meet() || ...);
  }
  static bool shards_may_meet() noexcept {
    if constexpr (TupleNode<Models>) {
      return shards_may_meet(std::make_index_sequence<std::tuple_size_v<Models>>{});
    } else {
      return forward_of<decltype(std::declval<const Models&>()[0])>::shards_may_meet();
    }
  }
};

}  // namespace detail
}}  // namespace fanout::v0
