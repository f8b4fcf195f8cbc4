// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/gather/gather.hpp>
#include <fanout/stages/stage.hpp>
#include <fanout/stages/stage_calls.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A value that a stage may give to later ones: arrays with a row for each row of the stage, and nodes around them.
/// Numbers, strings and reductions would depend on how many shards and micro-batches there are.
template <class X>
inline constexpr bool carries_rows = false;
struct CarriesRows {
  template <class X>
  static constexpr bool is = carries_rows<std::remove_cvref_t<X>>;
};
template <class X>
  requires(ArrayLeaf<X> || Rebuildable<X>)
inline constexpr bool carries_rows<X> = ArrayLeaf<X> || all_children<CarriesRows, X>;

/// Stands for the stage that makes a key, if there is none.
inline constexpr std::size_t no_stage = ~std::size_t{0};

template <class X, class K>
inline constexpr bool has_key = requires {
  requires X::contains(K());
};

/// What the I-th stage takes. `Results::of<S>` is the type of what the S-th stage returns.
template <class Results, std::size_t I, class Stage>
struct StageTakes;

/// The first stage takes the arguments.
template <class Results, class Stage>
struct StageTakes<Results, 0, Stage> {
  template <class Calls>
  using Call = typename Results::template First<Calls>;

  static constexpr bool finds_keys = true;
  static constexpr bool takes_of(std::size_t) noexcept { return false; }
};

/// It takes the whole result of the stage before.
template <class Results, std::size_t I, class M, class Source>
  requires(I != 0)
struct StageTakes<Results, I, Stage<M, Source>> {
  template <class Calls>
  using Call = typename Calls::template Call<typename Results::template of<I - 1>>;

  static constexpr bool finds_keys = true;
  /// True if it takes something of that stage.
  static constexpr bool takes_of(std::size_t stage) noexcept { return stage + 1 == I; }
  /// True if it takes the value that the S-th stage returns under the key K.
  template <class K, std::size_t S>
  static constexpr bool takes_key_of = S + 1 == I;
  static constexpr bool takes_one_key = false;
  /// Calls `f` with what it takes. `values(s)` is the result of stage `s`, an integral constant.
  template <class Values, class F>
  static void give(const Values& values, const F& f) {
    f(values(std::integral_constant<std::size_t, I - 1>()));
  }
};

/// It takes values under keys.
template <class Results, std::size_t I, class M, class Source, class... Keys>
  requires(I != 0 && sizeof...(Keys) > 0)
struct StageTakes<Results, I, Stage<M, Source, Keys...>> {
  template <class K, std::size_t... S>
  static constexpr std::size_t find_maker(std::index_sequence<S...>) noexcept {
    std::size_t found = no_stage;
    ((found = has_key<typename Results::template of<S>, K> ? S : found), ...);
    return found;
  }
  /// The last stage before that returns a dict with this key.
  template <class K>
  static constexpr std::size_t maker = find_maker<K>(std::make_index_sequence<I>());
  static constexpr bool finds_keys = ((maker<Keys> != no_stage) && ...);

  template <class Calls, class K>
  struct Value {  // dependent on Calls, so that it is looked at only if all keys were found
    using type = std::remove_cvref_t<decltype(std::declval<const typename Results::template of<maker<K>>&>()[K()])>;
  };
  template <class Calls>
  using Call = typename Calls::template Call<typename Value<Calls, Keys>::type...>;

  static constexpr bool takes_of(std::size_t stage) noexcept { return ((maker<Keys> == stage) || ...); }
  template <class K, std::size_t S>
  static constexpr bool takes_key_of = ((std::is_same_v<Keys, K> && maker<Keys> == S) || ...);
  /// Calls `f(key, maker)` for each key, `maker` as an integral constant.
  template <class F>
  static constexpr void for_each_key(const F& f) {
    (f(Keys(), std::integral_constant<std::size_t, maker<Keys>>()), ...);
  }
  static constexpr bool takes_one_key = sizeof...(Keys) == 1;
  template <class Values, class F>
  static void give(const Values& values, const F& f) {
    f(values(std::integral_constant<std::size_t, maker<Keys>>())[Keys()]...);
  }
};

/// The last of Stages, a tuple, that takes something of the result of the S-th one, which is kept until then. S + 1 if
/// there is none.
template <class Results, class Stages, std::size_t S>
constexpr std::size_t last_taker() noexcept {
  std::size_t found = S + 1;
  [&found]<std::size_t... I>(std::index_sequence<I...>) {
    ((found = StageTakes<Results, S + 1 + I, std::tuple_element_t<S + 1 + I, Stages>>::takes_of(S) ? S + 1 + I : found),
     ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Stages> - S - 1>());
  return found;
}

template <class Stage>
inline constexpr bool takes_keys = false;
template <class M, class Source, class... Keys>
inline constexpr bool takes_keys<Stage<M, Source, Keys...>> = sizeof...(Keys) > 0;

/// The type whose rules join the results of a stage's micro-batches. R is what a shard returns. If the model has
/// slices, its shards had all rows of the micro-batch, and the rules of R have made one result of theirs.
template <class R, bool is_sliced>
struct JoinedAs {
  using type = R;
};
template <class R>
struct JoinedAs<R, true> {
  using type = gathered_t<R>;
};

/// What the I-th of Stages, a tuple, has in a call of the pipeline with Args.
template <class Stages, std::size_t I, class... Args>
struct StageTypes;

template <class Stages, class... Args>
struct CallResults {
  template <std::size_t S>
  using of = typename StageTypes<Stages, S, Args...>::Result;
  template <class Calls>
  using First = typename Calls::template Call<Args...>;
};

template <class Stages, std::size_t I, class... Args>
using CallTakes = StageTakes<CallResults<Stages, Args...>, I, std::tuple_element_t<I, Stages>>;

template <class Stages, std::size_t I, class... Args>
struct StageTypes {
  using Takes = CallTakes<Stages, I, Args...>;
  using Calls = StageCalls<typename std::tuple_element_t<I, Stages>::model_type>;
  using Call = typename Takes::template Call<Calls>;
  using Returned = typename Call::R;  ///< by a shard
  using Result = gathered_t<Returned>;
  using Joined = typename JoinedAs<Returned, Calls::is_sliced>::type;
};

/// Why the stages of a pipeline do not fit together.
enum class Misfit { none, key_is_not_made, gives_no_rows, combines_fields };

/// The first misfit of the stages from the I-th one on. The types of what comes after it are not known.
template <class Stages, std::size_t I, class... Args>
constexpr Misfit first_misfit() noexcept {
  if constexpr (!CallTakes<Stages, I, Args...>::finds_keys) {
    return Misfit::key_is_not_made;
  } else if constexpr (StageTypes<Stages, I, Args...>::Call::combines_fields) {
    return Misfit::combines_fields;
  } else if constexpr (I + 1 == std::tuple_size_v<Stages>) {
    return Misfit::none;
  } else if constexpr (!carries_rows<typename StageTypes<Stages, I, Args...>::Joined>) {
    return Misfit::gives_no_rows;
  } else {
    return first_misfit<Stages, I + 1, Args...>();
  }
}

}}}  // namespace fanout::v0::detail
