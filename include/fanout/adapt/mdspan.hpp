// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/adapt/strided_layout.hpp>
#include <fanout/base/requirements.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <version>

#if __has_include(<mdspan>)
#include <mdspan>  // has std::mdspan from C++23 on
#endif

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/gather/combine.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/concatenate_on.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/stack.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/tree/leaf.hpp>

// std::mdspan, and types with its interface such as Kokkos's: split in place on the first axis, gathered as a Tensor.

namespace fanout { inline namespace v0 {

/// An array of at least one axis with the interface of std::mdspan.
template <class X>
concept Mdspan = requires(const X& x) {
  typename X::element_type;
  typename X::extents_type;
  typename X::layout_type;
  typename X::accessor_type;
  x.data_handle();
  x.mapping();
  x.accessor();
  x.extent(typename X::rank_type{});
  requires(X::rank() >= 1);
};

namespace detail {

template <class E>
struct mdspan_extents;
template <template <class, std::size_t...> class E, class I, std::size_t Rows, std::size_t... Rest>
struct mdspan_extents<E<I, Rows, Rest...>> {
  using any_rows = E<I, std::dynamic_extent, Rest...>;
  using two_by_three = E<I, 2, 3>;
};

/// True if a range of rows has the same layout, as in layout_right. Tested by a small mapping, since there are layouts
/// of other names.
template <class L, class E>
inline constexpr bool is_row_major = false;
template <class L, class E>
  requires std::is_constructible_v < typename L::template mapping<E>,
const E& > inline constexpr bool is_row_major<L, E> = [] {
  const typename L::template mapping<typename mdspan_extents<E>::two_by_three> mapping{};
  return mapping(0, 1) == 1 && mapping(1, 0) == 3;
}();

/// True if it tells where its elements begin and end.
template <class X>
concept MdspanOfMemory = std::is_pointer_v<typename X::data_handle_type> && requires(const X& x) {
  x.mapping().required_span_size();
};

/// The read-only accessor of the same kind, if there is one.
template <class A>
struct reading_accessor {
  using type = A;
};
template <template <class> class A, class T>
  requires(std::is_constructible_v<A<const T>, const A<T>&>&&
               std::is_convertible_v<typename A<T>::data_handle_type, typename A<const T>::data_handle_type>)
struct reading_accessor<A<T>> {
  using type = A<const T>;
};

template <class X>
struct mdspan_rows;
template <template <class, class, class, class> class Md, class T, class E, class L, class A>
struct mdspan_rows<Md<T, E, L, A>> {
  using extents_type = typename mdspan_extents<E>::any_rows;
  static constexpr bool row_major = is_row_major<L, E>;
  using layout = typename std::conditional_t<row_major, std::type_identity<L>, backend::strided_layout<L>>::type;
  using accessor = typename reading_accessor<A>::type;
  using type = Md<typename accessor::element_type, extents_type, layout, accessor>;
  using mapping = typename type::mapping_type;
  using strides = std::array<typename extents_type::index_type, extents_type::rank()>;
  static constexpr bool strided = std::is_constructible_v<mapping, const extents_type&, const strides&>;
};

template <Mdspan X>
Extents<X::rank()> extents_of(const X& x) {
  Extents<X::rank()> extents;
  for (std::size_t axis = 0; axis < X::rank(); ++axis) {
    extents[axis] = static_cast<std::size_t>(x.extent(static_cast<typename X::rank_type>(axis)));
  }
  return extents;
}

/// Copies the elements in row-major order, and moves `to` behind the last one.
template <Mdspan X, class T, class... Index>
void copy_elements(const X& x, T*& to, Index... index) {
  if constexpr (sizeof...(Index) == X::rank()) {
    *to++ = x.accessor().access(x.data_handle(), static_cast<std::size_t>(x.mapping()(index...)));
  } else {
    for (typename X::index_type i = 0; i < x.extent(sizeof...(Index)); ++i) copy_elements(x, to, index..., i);
  }
}

template <Mdspan X>
using mdspan_tensor_t = Tensor<std::remove_cv_t<typename X::element_type>, X::rank()>;

/// Gathers copies of the pieces as tensors, by the rule.
template <class Rule, Mdspan X>
auto gather_copies(const ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
  using Copy = mdspan_tensor_t<X>;
  InlineArray<Copy> copies(pieces.size());
  ShardResults<Copy> copied(pieces.size(), true);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    copies[i] = Copy::uninitialized(extents_of(pieces[i]), {});
    auto* to = copies[i].data();
    copy_elements(pieces[i], to);
    copied.set(i, copies[i]);
  }
  return gather_traits<Rule, Copy>::gather(copied, place, path);
}

}  // namespace detail

/// A shard's rows of an mdspan: a read-only mdspan in place, with the same layout if that is row-major, else with
/// layout_stride. Borrows x.
template <Mdspan X>
using MdspanRows = typename detail::mdspan_rows<X>::type;

template <Mdspan X>
struct leaf_traits<X> {
  using piece_type = MdspanRows<X>;

  static std::size_t rows(const X& x) { return static_cast<std::size_t>(x.extent(0)); }

  static piece_type piece(const X& x, std::size_t begin, std::size_t end) {
    using Rows = detail::mdspan_rows<X>;
    using Index = typename Rows::extents_type::index_type;
    constexpr bool has_rows = requires { x.mapping().stride(0); }
    &&(Rows::row_major || Rows::strided);
    static_assert(has_rows,
                  "fanout: an mdspan is split by its strides, but this layout has none; specialise "
                  "fanout::backend::strided_layout for it, or pass broadcast(x)");
    if constexpr (has_rows) {
      std::array<Index, X::rank()> extents{};
      std::array<Index, X::rank()> strides{};
      for (std::size_t axis = 0; axis < X::rank(); ++axis) {
        const auto at = static_cast<typename X::rank_type>(axis);
        extents[axis] = axis == 0 ? static_cast<Index>(end - begin) : static_cast<Index>(x.extent(at));
        strides[axis] = static_cast<Index>(x.mapping().stride(at));
      }
      const auto first = x.accessor().offset(x.data_handle(), begin * static_cast<std::size_t>(strides[0]));
      const typename Rows::accessor accessor(x.accessor());
      if constexpr (Rows::row_major) {
        return piece_type(first, typename Rows::mapping(typename Rows::extents_type(extents)), accessor);
      } else {
        return piece_type(first, typename Rows::mapping(typename Rows::extents_type(extents), strides), accessor);
      }
    }
    __builtin_unreachable();  // the static_assert has failed; this avoids a second error
  }

  static std::span<const std::byte> bytes(const X& x) requires detail::MdspanOfMemory<X> {
    return std::as_bytes(std::span(x.data_handle(), static_cast<std::size_t>(x.mapping().required_span_size())));
  }

  static detail::mdspan_tensor_t<X> concatenate(auto& pieces, const GatherTarget& place, const LeafPath& path) {
    if (place.axis != 0) return detail::gather_copies<rules::Concatenate>(pieces, place, path);
    auto extents = detail::extents_of(pieces[0]).with_rows(0);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto found = detail::extents_of(pieces[i]);
      if (!(found.with_rows(extents[0]) == extents)) {
        detail::refuse_extents(place, path, i, "trailing extents of " + to_string(detail::extents_of(pieces[0])),
                               to_string(found), "arrays are concatenated by rows, so all other axes must agree");
      }
      extents[0] += found[0];
    }
    auto result = detail::mdspan_tensor_t<X>::uninitialized(extents, {});
    auto* to = result.data();
    for (std::size_t i = 0; i < pieces.size(); ++i) detail::copy_elements(pieces[i], to);
    return result;
  }
};

/// All rules but first and concatenation by rows: on tensor copies.
template <class Rule, Mdspan X>
  requires(!std::is_same_v<Rule, rules::Concatenate> && !detail::TakesFirst<Rule> &&
           detail::Gatherable<Rule, detail::mdspan_tensor_t<X>>)
struct gather_traits<Rule, X> {
  using type = detail::gathered_under_t<Rule, detail::mdspan_tensor_t<X>>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    return detail::gather_copies<Rule>(pieces, place, path);
  }

  static void visit_numbers(type& result, const LeafPath& path, const auto& f) {
    f(std::span(result.data(), result.extents().size()), path);
  }
};

namespace detail {

template <Mdspan X>
inline constexpr bool has_plain_elements = std::is_same_v<typename X::data_handle_type, typename X::element_type*>;

}  // namespace detail

/// Borrows an mdspan of elements in host memory as a View of the same axes. Throws ShapeMismatch unless the elements
/// are contiguous and in row-major order.
template <Mdspan X>
  requires detail::has_plain_elements<X> View<typename X::element_type, X::rank()> as_view(const X& x) {
    const auto extents = detail::extents_of(x);
    std::size_t step = 1;
    for (std::size_t axis = X::rank(); axis > 0 && extents.size() != 0; --axis) {
      const auto stride = static_cast<std::size_t>(x.mapping().stride(static_cast<typename X::rank_type>(axis - 1)));
      if (extents[axis - 1] > 1 && stride != step) {
        throw ShapeMismatch(explain({.what = "a view of an mdspan",
                                     .expected = "elements that follow each other in row-major order",
                                     .found = "a stride of " + std::to_string(stride) + " on axis " +
                                              std::to_string(axis - 1) + " of " + to_string(extents),
                                     .advice = "copy them into a Tensor first"}));
      }
      step *= extents[axis - 1];
    }
    return {x.data_handle(), extents};
  }

#if defined(__cpp_lib_mdspan)

template <>
struct backend::strided_layout<std::layout_left> {
  using type = std::layout_stride;
};

/// A View, or the rows of an Output, as a std::mdspan of the same elements and axes. Borrows them.
template <class T, std::size_t R>
std::mdspan<T, std::dextents<std::size_t, R>> as_mdspan(View<T, R> view) {
  std::array<std::size_t, R> extents{};
  for (std::size_t axis = 0; axis < R; ++axis) extents[axis] = view.extent(axis);
  return {view.data(), std::dextents<std::size_t, R>(extents)};
}

/// The same for a Tensor, which the mdspan must not outlive.
template <class T, std::size_t R>
auto as_mdspan(Tensor<T, R>& tensor) {
  return as_mdspan(tensor.view());
}
template <class T, std::size_t R>
auto as_mdspan(const Tensor<T, R>& tensor) {
  return as_mdspan(tensor.view());
}
template <class T, std::size_t R>
auto as_mdspan(const Tensor<T, R>&&) {
  return as_mdspan(detail::refuse_view_of_temporary<View<const T, R>>());
}

#endif

}}  // namespace fanout::v0
