// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/output.hpp>
#include <fanout/array/strided_view.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/join_pieces.hpp>
#include <fanout/scatter/axis.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Concatenates leaves in row order.

namespace detail {

/// Returns the output buffer that this value is a window of. Null if it is none.
template <class T, std::size_t R>
OutputBuffer* buffer_of(const Output<T, R>& output) {
  return &output.buffer();
}
template <class T, std::size_t R>
OutputBuffer* buffer_of(const Tensor<T, R>& tensor) {
  return tensor.storage().memory().operations->release == &release_window
             ? static_cast<OutputBuffer*>(tensor.storage().owner())
             : nullptr;
}
template <class T, std::size_t R>
OutputBuffer* buffer_of(const View<T, R>&) {
  return nullptr;
}

/// Returns the output buffer that the first piece in the result's memory is a window of. Null if there is none.
template <class X>
OutputBuffer* find_common_buffer(const ShardResults<X>& pieces, const GatherTarget& place) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    OutputBuffer* const buffer = buffer_of(pieces[i]);
    if (buffer != nullptr && buffer->memory().space == place.target.space) return buffer;
    if (pieces[i].space() == place.target.space) return nullptr;
  }
  return nullptr;
}

/// Takes the bytes of an output buffer if each shard returned its own rows of it. Rows of shards whose device has
/// another memory are copied into it. Empty if the pieces are anything else, if the bytes were taken before, or if a
/// tensor elsewhere shows them.
template <class X>
Storage take_common_buffer(const ShardResults<X>& pieces, const GatherTarget& place) {
  OutputBuffer* const buffer = find_common_buffer(pieces, place);
  if (buffer == nullptr || !buffer->owns_bytes()) return {};
  std::size_t rows = 0;
  std::size_t holders = place.buffers_held;
  std::size_t elsewhere = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (buffer_of(pieces[i]) != buffer) {
      if (pieces[i].space() == place.target.space) return {};
      ++elsewhere;
    } else if (reinterpret_cast<const std::byte*>(pieces[i].data()) != buffer->row(rows)) {
      return {};
    } else if constexpr (!std::is_convertible_v<const X*, const View<typename X::element_type, X::rank>*>) {
      ++holders;
    }
    rows += pieces[i].extent(0);
  }
  if (rows != buffer->rows() || buffer->holders() != holders) return {};
  if (elsewhere != 0) {
    if (pieces[0].extents().row_size() * sizeof(typename X::element_type) != buffer->row_bytes()) return {};
    InlineArray<backend::Transfer> transfers(elsewhere);
    backend::Transfer* next = transfers.data();
    std::size_t row = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!(pieces[i].space() == place.target.space)) {
        const std::size_t bytes = pieces[i].size() * sizeof(typename X::element_type);
        *next++ = {buffer->row(row), pieces[i].space(), pieces[i].data(), bytes};
      }
      row += pieces[i].extent(0);
    }
    backend::transfer_all(place.target, transfers.data(), elsewhere);
  }
  return buffer->take();
}

/// Concatenates arrays on an axis other than 0. Copies.
template <class T, std::size_t R, class X>
Tensor<T, R> concatenate_on(std::size_t axis, const ShardResults<X>& pieces, const GatherTarget& place,
                            const LeafPath& path) {
  const Extents<R> extents = extents_on_axis(pieces, axis, place, path);
  auto result = make_result<T, R>(extents, place);
  std::size_t rows = 1;
  for (std::size_t i = 0; i < axis; ++i) rows *= extents[i];
  join_runs(result.data(), rows, bytes_of<T, R>(pieces), place);
  return result;
}

/// Concatenates tensors, views and outputs on the axis of `place`. Copies nothing if all rows are in one output buffer,
/// or if the only shard returned a tensor.
template <class X, class T, std::size_t R>
struct ConcatenateArrays {
  using type = Tensor<T, R>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    if (place.axis != 0) {
      const std::size_t axis = backend::checked_axis(place.axis, R, path);
      if (axis != 0 && pieces.size() != 1) return concatenate_on<T, R>(axis, pieces, place, path);
    }
    const Extents<R> extents = extents_of_all(pieces, place, path);
    if (Storage whole = take_common_buffer(pieces, place); whole.data() != nullptr) {
      return type(std::move(whole), extents);
    }
    if constexpr (std::is_same_v<X, type>) {
      if (pieces.size() == 1 && pieces.owned() && buffer_of(pieces[0]) == nullptr &&
          pieces[0].space() == place.target.space) {
        return pieces.take_only();
      }
    }
    type result = make_result<T, R>(extents, place);
    join_pieces(result.data(), bytes_of<T, R>(pieces), place);
    return result;
  }
};

template <class T, std::size_t R>
struct gather_defaults<rules::Concatenate, Tensor<T, R>> : ConcatenateArrays<Tensor<T, R>, T, R> {};
template <class T, std::size_t R>
struct gather_defaults<rules::Concatenate, View<T, R>> : ConcatenateArrays<View<T, R>, std::remove_cv_t<T>, R> {};
template <class T, std::size_t R>
struct gather_defaults<rules::Concatenate, Output<T, R>> : ConcatenateArrays<Output<T, R>, T, R> {};

/// Throws ShapeMismatch if values with one axis are to be concatenated on another.
inline void check_by_rows(const GatherTarget& place, const LeafPath& path) {
  if (place.axis != 0) backend::checked_axis(place.axis, 1, path);
}

/// Packs strided views: by rows into the result itself, if they are in its memory.
template <class T, std::size_t R>
struct gather_defaults<rules::Concatenate, StridedView<T, R>> {
  using X = StridedView<T, R>;
  using type = Tensor<std::remove_cv_t<T>, R>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    bool in_place = place.axis == 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) in_place = in_place && pieces[i].space() == place.target.space;
    if (in_place) {
      auto result = make_result<std::remove_cv_t<T>, R>(extents_of_all(pieces, place, path), place);
      auto* to = result.data();
      for (std::size_t i = 0; i < pieces.size(); to += pieces[i++].size()) pack_piece(to, pieces[i], place);
      return result;
    }
    InlineArray<type> tensors(pieces.size());
    ShardResults<type> packed(pieces.size(), true);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      check_space(pieces[i].space(), place, path, i);
      const backend::Memory memory =
          pieces[i].space() == place.target.space ? place.target : backend::memory_of(pieces[i].space());
      tensors[i] = type::uninitialized(pieces[i].extents(), memory);
      pack(*memory.operations, tensors[i].data(), pieces[i]);
      packed.set(i, tensors[i]);
    }
    return gather_traits<rules::Concatenate, type>::gather(packed, place, path);
  }
};

/// Concatenates vectors and spans of elements into a vector.
template <class X, class T>
struct ConcatenateElements {
  using type = std::vector<T>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    check_by_rows(place, path);
    if constexpr (std::is_same_v<X, type>) {
      if (pieces.size() == 1) return pieces.take_only();
    }
    type result;
    std::size_t size = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) size += pieces[i].size();
    result.reserve(size);
    for (std::size_t i = 0; i < pieces.size(); ++i) append(result, pieces, i);
    return result;
  }

 private:
  static void append(type& result, ShardResults<X>& pieces, std::size_t i) {
    if constexpr (std::is_same_v<X, type> && !std::is_trivially_copyable_v<T>) {
      if (pieces.owned()) {
        for (T& element : pieces.take(i)) result.push_back(std::move(element));
        return;
      }
    }
    result.insert(result.end(), pieces[i].begin(), pieces[i].end());
  }
};

/// An element that can be copied into a result.
template <class T>
concept Row = ArrayElement<T> && std::is_copy_constructible_v<T>;

template <Row T, class Allocator>
struct gather_defaults<rules::Concatenate, std::vector<T, Allocator>>
    : ConcatenateElements<std::vector<T, Allocator>, T> {};
template <class Allocator>  // neither an array, since nothing can point to its elements, nor a list
struct gather_defaults<rules::Concatenate, std::vector<bool, Allocator>>
    : ConcatenateElements<std::vector<bool, Allocator>, bool> {};
template <class T, std::size_t N>
  requires(Row<std::remove_cv_t<T>> || std::is_same_v<std::remove_cv_t<T>, bool>)
struct gather_defaults<rules::Concatenate, std::span<T, N>>
    : ConcatenateElements<std::span<T, N>, std::remove_cv_t<T>> {};

/// A leaf whose traits concatenate it. ConcatenatesAtPlace is the form that receives the target.
template <class X>
concept ConcatenatesItself = ArrayLeaf<X> && requires(const ShardResults<X>& pieces, const LeafPath& path) {
  leaf_traits<X>::concatenate(pieces, path);
};
template <class X>
concept ConcatenatesAtPlace = ArrayLeaf<X> &&
    requires(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
  leaf_traits<X>::concatenate(pieces, place, path);
};

template <ConcatenatesItself X>
struct gather_defaults<rules::Concatenate, X> {
  using type =
      decltype(leaf_traits<X>::concatenate(std::declval<const ShardResults<X>&>(), std::declval<const LeafPath&>()));

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    check_by_rows(place, path);
    return leaf_traits<X>::concatenate(std::as_const(pieces), path);
  }
};

template <ConcatenatesAtPlace X>
struct gather_defaults<rules::Concatenate, X> {
  using type = decltype(leaf_traits<X>::concatenate(
      std::declval<ShardResults<X>&>(), std::declval<const GatherTarget&>(), std::declval<const LeafPath&>()));

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    return leaf_traits<X>::concatenate(pieces, place, path);
  }
};

/// Numbers become an array with one element per shard, also for one shard.
template <Scalar X>
struct gather_defaults<rules::Concatenate, X> {
  using type = Tensor<X, 1>;

  static type gather(ShardResults<X>& pieces, const GatherTarget&, const LeafPath&) {
    type result = type::uninitialized(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) result[i] = pieces[i];
    return result;
  }
};

/// Strings become a vector with one string per shard.
template <StringNode X>
struct gather_defaults<rules::Concatenate, X> {
  using type = std::vector<std::conditional_t<StringNode<X>, std::string, X>>;  // instantiated only if it is used

  static type gather(ShardResults<X>& pieces, const GatherTarget&, const LeafPath&) {
    type result;
    result.reserve(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) result.emplace_back(std::string_view(pieces[i]));
    return result;
  }
};

}  // namespace detail
}}  // namespace fanout::v0
