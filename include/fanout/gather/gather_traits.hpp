// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/text.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace rules {

/// The default rule: concatenates the values of the shards in row order.
struct Concatenate {};

}  // namespace rules

namespace detail {

/// True if a part of a tree under this rule may have a rule of its own.
template <class Rule>
inline constexpr bool lets_choose = true;

/// True for a rule that takes a vector of rows as one array, whatever its elements are. Other rules gather each
/// element.
template <class Rule>
inline constexpr bool takes_rows = false;
template <>
inline constexpr bool takes_rows<rules::Concatenate> = true;

/// How fanout gathers its own types and those of the standard library. A type without a `type` cannot be gathered.
template <class Rule, class X>
struct gather_defaults {};

}  // namespace detail

/// How values of type X are gathered under a rule. Specialise it for your own type, for all rules or for some:
///
///     using type = ...;  // what the values of all shards are gathered to
///     static type gather(ShardResults<X>& results, const GatherTarget& target, const LeafPath& path);
///
/// `results` are the values of the shards, in row order. `path` names the place in the tree, for errors. `gather` runs
/// on the thread that takes the result. The call throws what `gather` throws. The default handles the types that fanout
/// knows.
///
/// For a rule such as psum() with several ranks, it also needs the numbers that it has combined, which are then
/// combined over the ranks. Without it, such a call throws Error.
///
///     static void visit_numbers(type& result, const LeafPath& path, const auto& f);  // calls f(std::span<T>, path)
template <class Rule, class X>
struct gather_traits : detail::gather_defaults<Rule, X> {};

namespace detail {

template <class Rule, class X>
using gathered_under_t = typename gather_traits<Rule, std::remove_cvref_t<X>>::type;

template <class Rule, class X>
concept HasGatheredType = requires {
  typename gather_traits<Rule, X>::type;
};

template <class Rule, class X>
using gather_call_t = decltype(gather_traits<Rule, X>::gather(
    std::declval<ShardResults<X>&>(), std::declval<const GatherTarget&>(), std::declval<const LeafPath&>()));

/// True if `gather` can be called as documented. Only that of a specialisation is checked, to save compile time.
template <class Rule, class X>
concept GathersToType = std::is_base_of_v<gather_defaults<Rule, X>, gather_traits<Rule, X>> ||
    std::is_convertible_v<gather_call_t<Rule, X>, gathered_under_t<Rule, X>>;

template <class Rule, class X>
concept Gatherable = HasGatheredType<Rule, std::remove_cvref_t<X>> && GathersToType<Rule, std::remove_cvref_t<X>>;

/// A specialisation with a `type` or a `gather`, but not with both as documented.
template <class Rule, class X>
concept GathersIncompletely =
    !Gatherable<Rule, X> && (HasGatheredType<Rule, X> || requires { typename gather_call_t<Rule, X>; });

/// How the tree that chose this rule is gathered, if not like every tree under the rule.
template <class Rule, class X>
struct gather_chosen {};
template <class Rule, class X>
  requires Gatherable<Rule, X>
struct gather_chosen<Rule, X> : gather_traits<Rule, X> {
};

template <class Rule, class X>
concept GatherableChosen = requires {
  typename gather_chosen<Rule, X>::type;
};

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_extents(const GatherTarget& place, const LeafPath& path,
                                                          std::size_t shard, std::string_view expected,
                                                          std::string_view found, std::string_view advice);

[[gnu::cold]] FANOUT_INLINE void check_way_from(const MemorySpace& found, const GatherTarget& place,
                                                const LeafPath& path, std::size_t shard);

/// Throws DeviceMismatch if an array cannot be copied from its memory to that of the result.
inline void check_space(const MemorySpace& found, const GatherTarget& place, const LeafPath& path, std::size_t shard) {
  if (!(found == place.target.space)) check_way_from(found, place, path, shard);
}

/// True for extents [rows, rows, ...]. The likely mistake is output<T>(ctx, x.extent(0)) instead of output<T>(ctx).
template <std::size_t R>
bool has_rows_twice(const Extents<R>& extents, const GatherTarget& place, std::size_t shard) {
  if constexpr (R > 1) {
    return extents[0] == extents[1] && extents[1] == place.plan[shard].rows.size();
  } else {
    return false;
  }
}

/// Returns the extents of these arrays, concatenated by rows. Throws ShapeMismatch if their other extents differ, and
/// DeviceMismatch as check_space() does.
template <class X>
auto extents_of_all(const ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
  auto extents = pieces[0].extents();
  std::size_t rows = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto found = pieces[i].extents();
    if (!(found.with_rows(0) == extents.with_rows(0))) {
      const bool twice = has_rows_twice(extents, place, 0) && has_rows_twice(found, place, i);
      refuse_extents(place, path, i, Text() << "trailing extents of " << extents, to_string(found),
                     twice ? "these extents hold the rows of each shard twice: output<T>(ctx, ...) takes only the "
                             "extents after the rows, so output<T>(ctx) has one element for each row"
                           : "arrays are concatenated by rows, so all other axes must agree");
    }
    check_space(pieces[i].space(), place, path, i);
    rows += found[0];
  }
  return extents.with_rows(rows);
}

/// The extents that all shards must agree on, as text: `[2, :, 3]` for axis 1.
[[gnu::cold]] FANOUT_INLINE std::string all_axes_but(std::size_t joined, const std::size_t* extents, std::size_t rank);

/// Returns the extents of these arrays, concatenated on an axis other than 0. Throws as extents_of_all() does.
template <class X>
Extents<X::rank> extents_on_axis(const ShardResults<X>& pieces, std::size_t joined, const GatherTarget& place,
                                 const LeafPath& path) {
  Extents<X::rank> extents = pieces[0].extents();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Extents<X::rank>& found = pieces[i].extents();
    for (std::size_t axis = 0; axis < X::rank; ++axis) {
      if (axis == joined || found[axis] == extents[axis]) continue;
      refuse_extents(place, path, i, all_axes_but(joined, pieces[0].extents().values, X::rank), to_string(found),
                     Text() << "arrays are concatenated on axis " << joined << ", so all other axes must agree");
    }
    check_space(pieces[i].space(), place, path, i);
    if (i != 0) extents[joined] += found[joined];
  }
  return extents;
}

/// Returns this memory space with its operations. If these were not declared, returns the target, since no array can be
/// allocated in the space.
inline backend::Memory memory_in(const MemorySpace& space, const backend::Memory& target) noexcept {
  if (space == target.space) return target;
  const backend::Memory memory = backend::memory_of(space);
  return memory.operations == nullptr ? target : memory;
}

[[noreturn]] inline void refuse_structure(const GatherTarget& place, const LeafPath& path, std::size_t shard,
                                          std::string_view what, std::string_view expected, std::string_view found,
                                          std::string_view advice = "return the same structure from every replica") {
  throw StructureMismatch(explain({.what = what,
                                   .where = to_string(path),
                                   .expected = Text() << expected << " as from " << place.describe(0),
                                   .found = Text() << found << " from " << place.describe(shard),
                                   .advice = advice}));
}

}  // namespace detail
}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/gather/gather_traits.ipp>
#endif
