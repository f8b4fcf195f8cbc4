// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/base/text.hpp>
#include <fanout/dispatch/shared_copy.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/memory/copy_rows.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/scatter/overlap.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Writes results into what the caller has.

namespace detail {

/// A destination of the elements of a Tensor.
template <class D, class T, std::size_t R>
concept TakesElements = std::convertible_to<D&, View<T, R>>;

/// A destination of fixed length for the elements of a vector.
template <class D, class T>
concept TakesSpan = std::same_as<std::remove_cv_t<D>, std::span<T>>;

/// Calls `f(destination, result, path)` for each leaf of a result, with the leaf of the destination in the same place.
/// Throws StructureMismatch if their lengths or keys differ.
template <class D, class G, class F>
void visit_destination(D& to, G& result, const LeafPath& path, const F& f);

[[noreturn]] inline void refuse_destination(const LeafPath& path, const std::string& expected,
                                            const std::string& found) {
  throw StructureMismatch(explain({.what = "a destination has another structure than the result",
                                   .where = to_string(path),
                                   .expected = expected,
                                   .found = found,
                                   .advice = "make the destination of the result's structure"}));
}

/// The text of a map's keys, at most five of them.
template <class Map>
std::string list_keys(const Map& map) {
  Text text;
  std::size_t position = 0;
  for (auto entry = map.begin(); entry != map.end() && position < 5; ++entry, ++position) {
    text << (position == 0 ? "" : ", ") << key_text(entry->first, position);
  }
  if (position < map.size()) text << " and " << map.size() - position << " more";
  if (text.empty()) text << "no key";
  return text;
}

/// Refuses a map with all keys of the result and more. Looks keys up in the map, since its key type may differ.
template <class D, class G>
[[noreturn]] void refuse_other_key(const D& to, const G& result, const LeafPath& path) {
  auto other = to.begin();
  const auto is_of_result = [&] {
    for (const auto& [key, value] : result) {
      if (to.find(key) == other) return true;
    }
    return false;
  };
  std::size_t position = 0;
  for (; is_of_result(); ++other) ++position;
  refuse_destination(LeafPath::at_key(path, other->first, position),
                     Text() << "only the result's keys, " << list_keys(result), "this one too");
}

/// True if a result of type G is written into a D child by child.
template <class D, class G>
constexpr bool written_by_children() {
  constexpr ChildKind kind = child_kind<G>;
  if constexpr (ArrayLeaf<G> || kind == ChildKind::none || kind == ChildKind::sequence) {
    return false;
  } else if constexpr (StructNode<G>) {
    return std::is_same_v<D, G>;
  } else if constexpr (DictNode<G> && DictNode<D>) {
    return FixedChildren<G>::size == FixedChildren<D>::size;  // a surplus tensor would count as a destination
  } else if constexpr (DictNode<G> || DictNode<D>) {
    return false;
  } else if constexpr (TupleNode<G> && TupleNode<D>) {
    return std::tuple_size_v<G> == std::tuple_size_v<D>;
  } else if constexpr (VariantNode<G> && VariantNode<D>) {
    return AlternativesOf<G>::size == AlternativesOf<D>::size;
  } else {
    return child_kind<D> == kind;
  }
}

/// Throws StructureMismatch if the lengths of a destination or its keys differ from the result's.
template <class D, class G>
void check_children_of([[maybe_unused]] D& to, [[maybe_unused]] G& result, [[maybe_unused]] const LeafPath& path) {
  if constexpr (child_kind<G> == ChildKind::map) {
    visit_children<WithPlaces>(result, path, [&to](const auto&, const LeafPath& at, const auto& place) {
      if (to.find(place.key) == to.end()) refuse_destination(at, "this key", list_keys(to));
    });
  } else if constexpr (child_kind<G> == ChildKind::row) {
    if (to.size() != result.size()) {
      refuse_destination(path, Text() << result.size() << " trees", Text() << to.size());
    }
  }
}

// An optional or a variant whose destination holds something else is assigned as a whole, if the types are the same.

template <class X>
concept HoldsOne = OptionalNode<X> || VariantNode<X>;

template <HoldsOne D, HoldsOne G>
bool hold_alike(const D& to, const G& result) {
  if constexpr (OptionalNode<G>) {
    return to.has_value() == result.has_value();
  } else {
    return to.index() == result.index();
  }
}

template <HoldsOne X>
std::string what_is_held(const X& node) {
  if constexpr (OptionalNode<X>) {
    return node.has_value() ? "a value" : "none";
  } else {
    return node.valueless_by_exception() ? "no alternative" : "alternative " + std::to_string(node.index());
  }
}

template <class D, class G, class F>
void visit_destination(D& to, G& result, const LeafPath& path, const F& f) {
  if constexpr (!written_by_children<std::remove_cv_t<D>, G>()) {
    f(to, result, path);
  } else {
    if constexpr (HoldsOne<G>) {
      if (!hold_alike(to, result)) {
        if constexpr (std::is_same_v<D, G>) return f(to, result, path);
        refuse_destination(path, Text() << what_is_held(result) << ", or a destination of the result's type",
                           what_is_held(to));
      }
    }
    check_children_of(to, result, path);
    const auto write = [&to, &f](auto& child, const LeafPath& at, const auto& place) {
      visit_destination(place(to), child, at, f);
    };
    if constexpr (TupleNode<G>) {
      visit_fixed<WithPlaces>(result, path, write, fixed_indices<G>());
    } else {
      visit_children<WithPlaces>(result, path, write);
    }
    if constexpr (MapNode<G>) {
      // A tensor at a surplus key counts as a destination, so an output may have been written there.
      if (to.size() != result.size()) refuse_other_key(to, result, path);
    }
  }
}

/// Calls `f(memory, path)` for each array of a destination, in the order of the tree. Shards write its tensors, each
/// its own rows. Other arrays are written when all shards have ended.
template <class F>
struct VisitTargets {
  F& f;

  template <class X>
  void operator()(X& to, const LeafPath& path) const {
    using Node = std::remove_cv_t<X>;
    if constexpr (requires { requires TakesElements<X, typename X::value_type, X::rank>; }) {
      const View<typename X::value_type, X::rank> view(to);
      ShownMemory memory = shown_by(view);
      memory.by_rows = true;
      memory.written = true;
      memory.target = view.data();
      f(memory, path);
    } else if constexpr (ArrayLeaf<Node>) {
      f(shown_by(to), path);
    } else if constexpr (DictNode<Node> || TupleNode<Node> || HasArrayLeaf<Node>) {
      visit_children(to, path, [this](auto& child, const LeafPath& at, auto) { (*this)(child, at); });
    }
  }
};

/// Returns the target for a tensor of a destination. A tensor in another memory than the call's results gets null data:
/// it is written when all shards have ended.
inline OutputTarget target_in(const backend::Memory& results, const ShownMemory& tensor) noexcept {
  if (tensor.rows == 0 || !(tensor.space == results.space) || borrowed_in(results) == nullptr) return {};
  return {.data = tensor.target, .rows = tensor.rows, .row_bytes = tensor.bytes / tensor.rows};
}

template <class D>
std::string name_of_target(std::size_t n, D& to) {
  NameShown named{n};
  VisitTargets<NameShown>{named}(to, output_root);
  return named.name;
}

template <class D>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_destinations(std::size_t one, std::size_t other, D& to) {
  throw InvalidArgument(explain({.what = "two arrays of a destination show the same memory",
                                 .where = Text() << name_of_target(one, to) << " and " << name_of_target(other, to),
                                 .expected = "memory of its own for each",
                                 .advice = "pass two arrays that do not overlap"}));
}

template <class D, class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_shown_destination(const Overlap& overlap, D& to,
                                                                     const Args&... args) {
  throw InvalidArgument(explain(
      {.what = "an argument shows memory of the destination, which shards write while others read it",
       .where = Text() << name_of_shown(overlap.other, args...) << " and " << name_of_target(overlap.written, to),
       .expected = "memory that no argument shows, or the same rows of inout(x)",
       .advice = "write into another array; if forward reads only the rows that it writes, pass inout(x)"}));
}

/// Throws InvalidArgument, which names both, if two arrays of the destination overlap, or if an argument overlaps with
/// a tensor of it: outputs are written there while other shards read. An inout() may overlap with it row for row, since
/// each shard writes only its own rows.
template <class D, class... Args>
void check_destination(D& to, const SmallVector<ShownMemory>& memory, const Args&... args) {
  for (std::size_t i = 1; i < memory.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (memory[i].overlaps(memory[k])) refuse_destinations(k, i, to);
    }
  }
  SmallVector<ShownMemory> arguments;
  ListShown list{arguments};
  visit_shown(list, args...);
  const auto allowed = [](const ShownMemory& target, const ShownMemory& argument) {
    return argument.written && target.is_row_for_row(argument);
  };
  const Overlap overlap = find_overlap(memory, arguments, allowed);
  if (overlap.found) refuse_shown_destination(overlap, to, args...);
}

/// Copies a result out of the caller's memory if it was written to the wrong place: where another result belongs, or if
/// its destination is a variable.
struct SettleResults {
  template <class D, class G>
  void operator()(D&, G& result, const LeafPath& path) const {
    settle_all(result, path);
  }
  template <class D, class T, std::size_t R>
    requires TakesElements<D, T, R>
  void operator()(D& to, Tensor<T, R>& result, const LeafPath&) const { settle(result, View<T, R>(to).data()); }

 private:
  template <class X>
  static void settle_all(const X& tree, const LeafPath& path) {
    if constexpr (is_reduced<X>) {
      settle_all(tree.value, path);
    } else if constexpr (!ArrayLeaf<X> && !splits_itself<X>) {
      visit_children(tree, path, [](const auto& child, const LeafPath& at, auto) { settle_all(child, at); });
    }
  }
  template <class T, std::size_t R>
  static void settle_all(const Tensor<T, R>& tensor, const LeafPath&) {
    settle(tensor, nullptr);
  }
  /// True if the elements are in the caller's memory. A tensor that was combined as a part of a whole value may still
  /// be a window of an output.
  template <class T, std::size_t R>
  static bool shows_caller(const Tensor<T, R>& tensor) {
    const OutputBuffer* const buffer = buffer_of(tensor);
    const backend::Memory& memory = buffer == nullptr ? tensor.storage().memory() : buffer->memory();
    return is_borrowed(memory);
  }
  template <class T, std::size_t R>
  static void settle(const Tensor<T, R>& result, const void* at) {
    if (result.data() != at && shows_caller(result)) {
      const_cast<Tensor<T, R>&>(result) = Tensor<T, R>(result);
    }
  }
};

struct WriteResults {
  const DeviceTable& team;

  template <class D, class G>
  void operator()(D& to, G& result, const LeafPath& path) const {
    if constexpr (requires { requires TakesElements<D, typename G::value_type, G::rank>; }) {
      write_elements<typename G::value_type, G::rank>(to, result, path);
    } else if constexpr (requires { requires TakesSpan<D, typename G::value_type>; }) {
      if (to.size() != result.size()) {
        refuse_destination(path, Text() << result.size() << " elements", Text() << to.size());
      }
      for (std::size_t i = 0; i < result.size(); ++i) to[i] = std::move(result[i]);
    } else if constexpr (std::is_assignable_v<D&, G&&>) {
      to = std::move(result);
    } else {
      static_assert(std::is_assignable_v<D&, G&&>,
                    "fanout: a result cannot be written into its destination; pass the same structure, with a Tensor "
                    "or a View<T, R> for a Tensor<T, R>, a std::vector<T> or a std::span<T> for a std::vector<T>, and "
                    "an assignable value for anything else");
    }
  }

 private:
  template <class T, std::size_t R>
  void write_elements(View<T, R> to, const Tensor<T, R>& result, const LeafPath& path) const {
    if (!(to.extents() == result.extents())) {
      throw ShapeMismatch(
          explain({.what = "a destination has other extents than the result",
                   .where = to_string(path),
                   .expected = to_string(result.extents()),
                   .found = to_string(to.extents()),
                   .advice = "make the destination of the result's extents; into() does not resize it"}));
    }
    const backend::Memory memory =
        to.space() == result.space() ? result.storage().memory() : backend::memory_of(to.space());
    if (!backend::can_transfer(memory, result.space())) {
      throw DeviceMismatch(explain({.what = Text() << two_devices(result.space(), to.space())
                                                   << ": a destination lies in another memory than the result",
                                    .where = to_string(path),
                                    .expected = to_string(result.space()),
                                    .found = to_string(to.space()),
                                    .advice = "see Options::output"}));
    }
    if (to.data() == result.data()) return;
    const std::size_t bytes = result.size() * sizeof(T);
    if (to.space() == host_memory && result.space() == host_memory) {
      const RowPart all{reinterpret_cast<const std::byte*>(result.data()), bytes, bytes};
      return copy_shared(RowsCopy{reinterpret_cast<std::byte*>(to.data()), 1, &all, 1, bytes}, &team);
    }
    backend::transfer(memory, to.data(), result.space(), result.data(), bytes);
    backend::wait_for(memory);
  }
};

/// Writes a result over what the destination holds. The team shares large copies.
template <class D, class G>
void write_into(D& to, G& result, const DeviceTable& team) {
  visit_destination(to, result, output_root, SettleResults());
  visit_destination(to, result, output_root, WriteResults{team});
}

}  // namespace detail
}}  // namespace fanout::v0
