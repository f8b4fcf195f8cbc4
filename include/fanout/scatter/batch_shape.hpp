// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include <fanout/scatter/broadcast.hpp>
#include <fanout/scatter/inout.hpp>
#include <fanout/scatter/overlap.hpp>
#include <fanout/scatter/split_on.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// For visit_arrays(): mixes the extents of arrays into a hash (FNV-1a), without those of the axis that is split.
class ShapeHash {
 public:
  explicit ShapeHash(std::uint64_t& hash, int axis) : hash_(hash), axis_(axis) {}

  template <class X>
  void operator()(const Broadcast<X>& whole, const LeafPath& path) const {
    visit_arrays(whole.value, path, ShapeHash(hash_, none));
  }
  template <int Axis, class X>
  void operator()(const SplitOn<Axis, X>& split, const LeafPath& path) const {
    visit_arrays(split.value, path, ShapeHash(hash_, Axis));
  }
  template <class X>
  void operator()(const InOut<X>& written, const LeafPath& path) const {
    (*this)(written.value, path);
  }
  template <class X>
  void operator()(const X& array, const LeafPath&) const {
    if constexpr (requires { array.extents()[0]; }) {
      mix(sizeof(*array.data()));
      constexpr int rank = static_cast<int>(X::rank);
      for (int axis = 0; axis < rank; ++axis) {
        if (axis != axis_ && axis != axis_ + rank) mix(array.extents()[static_cast<std::size_t>(axis)]);
      }
    } else if constexpr (ArrayLeaf<X>) {
      const ShownMemory shown = shown_by(array);
      const std::size_t rows = axis_ == none ? 0 : rows_of(array, shown);
      mix(rows == 0 ? shown.bytes : shown.bytes / rows);
    } else if constexpr (requires { std::size_t{array.size()}; }) {
      mix(axis_ == none ? array.size() : 1);
    }
  }

 private:
  static constexpr int none = 1 << 30;  // the array is not split

  /// On the axis that is split.
  template <class X>
  std::size_t rows_of(const X& array, const ShownMemory& shown) const {
    if constexpr (requires { leaf_traits<X>::rows_on(axis_, array, LeafPath("input")); }) {
      return leaf_traits<X>::rows_on(axis_, array, LeafPath("input"));
    } else {
      return shown.rows;
    }
  }

  void mix(std::size_t value) const noexcept { hash_ = (hash_ ^ value) * 0x100000001B3U; }

  std::uint64_t& hash_;
  int axis_;
};

/// A number for the shape of the arguments of a call, whose arrays are split on `axis` unless they say otherwise: equal
/// for batches that differ only in their rows. It is a hash of all other extents, and of the sizes of the elements. For
/// arrays that do not tell their extents, it is one of the bytes of a row.
template <class... Args>
std::uint64_t batch_shape(int axis, const std::tuple<Args...>& arguments) {
  std::uint64_t shape = 0xCBF29CE484222325U;
  std::apply([&](const auto&... argument) { (visit_arrays(argument, LeafPath("input"), ShapeHash(shape, axis)), ...); },
             arguments);
  return shape;
}

}}}  // namespace fanout::v0::detail
