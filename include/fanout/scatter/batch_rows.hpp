// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/array/vector_leaf.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/overlap.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Counts the rows of a call. `rows` are those of the first array, and `plan` is that of the first sharded argument.
/// `agree` is false if another array or plan differs.
struct CountRows {
  std::optional<std::size_t> rows = {};
  const Plan* plan = nullptr;
  bool agree = true;

  void operator()(std::size_t found, const LeafPath&) {
    if (!rows) rows = found;
    agree = agree && found == *rows;
  }
  void operator()(const Plan& found, const LeafPath& path) {
    if (plan == nullptr) plan = &found;
    agree = agree && found == *plan;
    (*this)(found.rows(), path);
  }
};

/// Throws ShapeMismatch at the first array that differs from the ones before it. The error names both places.
struct RefuseRows {
  std::optional<std::size_t> rows = {};
  std::string first = {};
  const Plan* plan = nullptr;
  std::string first_sharded = {};

  FANOUT_INLINE void operator()(std::size_t found, const LeafPath& path);
  FANOUT_INLINE void operator()(const Plan& found, const LeafPath& path);
};

/// A standard container without arrays in it whose elements are not contiguous, for example a list or a set.
template <class X>
concept Scattered = !HasArrayLeaf<X> && !StringNode<X> && !is_vector_of_bool<X> && requires(const X& x) {
  typename X::value_type;
  typename X::allocator_type;
  x.begin();
}
&&!requires { typename X::mapped_type; };

/// A `std::array` without arrays in it.
template <class X>
concept FixedArray = TupleNode<X> && !HasArrayLeaf<X> && requires(const X& x) {
  typename X::value_type;
  x.data();
};

/// Refuses an argument that would go whole to every replica, although it may be meant as rows.
template <class X>
constexpr void check_argument() {
  static_assert(!Scattered<X>,
                "fanout: the elements of this container are not contiguous, so it cannot be split by rows (this "
                "diagnostic shows its type); pass a std::vector, or broadcast(x) to send all of it to every replica");
  static_assert(!std::is_array_v<X> || ArrayLeaf<X> || Letter<std::remove_all_extents_t<X>>,
                "fanout: a C array of trees is not split (this diagnostic shows its type); pass std::span(x), or "
                "broadcast(x) to send all of it to every replica");
  static_assert(!FixedArray<X>,
                "fanout: a std::array may be meant as rows or as one value for every replica (this diagnostic shows "
                "its type); pass rows(x) or broadcast(x)");
}

template <class F, std::size_t... I, class... Args>
void visit_arguments([[maybe_unused]] F& f, [[maybe_unused]] int axis, std::index_sequence<I...>, const Args&... args) {
  (visit_rows(args, axis, input_path<I>, f), ...);
}

/// Throws ShapeMismatch, which names two arguments that disagree.
template <class... Args>
[[gnu::cold, gnu::noinline]] void refuse_rows(int axis, const Args&... args) {
  RefuseRows refuse;
  visit_arguments(refuse, axis, std::index_sequence_for<Args...>(), args...);
}

/// Throws ShapeMismatch, which names two arguments, if their rows or plans differ. Throws InvalidArgument, which names
/// both, if an inout() overlaps another argument.
template <class... Args>
CountRows count_rows(int axis, const Args&... args) {
  (check_argument<Args>(), ...);
  CountRows count;
  visit_arguments(count, axis, std::index_sequence_for<Args...>(), args...);
  if (!count.agree) refuse_rows(axis, args...);
  check_written(args...);
  return count;
}

}  // namespace detail

/// Returns the number of rows of a call: that of every array that is split. Empty if no array is split. Throws
/// ShapeMismatch, which names two arguments, if their numbers of rows differ. Throws InvalidArgument, which names both,
/// if an inout() overlaps another argument.
template <class... Args>
std::optional<std::size_t> batch_rows(const Args&... args) {
  return detail::count_rows(0, args...).rows;
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/scatter/batch_rows.ipp>
#endif
