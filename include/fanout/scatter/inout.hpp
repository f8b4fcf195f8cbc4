// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <fanout/array/view.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// An array whose rows `forward` may write in place. inout() makes it.
template <class X>
struct InOut {
  X value;  ///< a reference to the caller's array, or a view or a span of it
};

template <class X>
inline constexpr bool wraps_tree<InOut<X>> = true;

template <class X>
inline constexpr bool is_inout<InOut<X>> = true;

/// Returns the writable elements of an array: a View if it has axes, otherwise a span.
template <Contiguous X>
auto writable_rows(X& x) {
  return View<std::remove_reference_t<decltype(*x.data())>, X::rank>(x);
}
template <ArrayLeaf X>
  requires(!Contiguous<X>)
auto writable_rows(X& x) -> decltype(std::span(x.data(), x.size())) { return std::span(x.data(), x.size()); }

/// An array whose rows can be written. It must be an lvalue, or a view or a span, which borrows its elements.
template <class X>
concept WritableRows =
    ArrayLeaf<std::remove_reference_t<X>> && !std::is_const_v<std::remove_reference_t<X>> &&
    (std::is_lvalue_reference_v<X> || std::is_trivially_copyable_v<X>)&&requires(std::remove_reference_t<X> & x) {
  requires !std::is_const_v<std::remove_reference_t<decltype(*writable_rows(x).data())>>;
};

}  // namespace detail

template <class X>
struct leaf_traits<detail::InOut<X>> {
  using piece_type = decltype(detail::writable_rows(std::declval<std::remove_reference_t<X>&>()));

  static std::size_t rows(const detail::InOut<X>& x) { return leaf_traits<std::remove_reference_t<X>>::rows(x.value); }
  static piece_type piece(const detail::InOut<X>& x, std::size_t begin, std::size_t end) {
    std::remove_reference_t<X>& value = const_cast<std::remove_reference_t<X>&>(x.value);  // its elements are not const
    if constexpr (detail::Contiguous<std::remove_reference_t<X>>) {
      return detail::writable_rows(value).rows(RowRange{begin, end});
    } else {
      return detail::writable_rows(value).subspan(begin, end - begin);
    }
  }
};

/// `model(inout(state))`: the array is split by rows, and `forward` may read and write its rows in place. It receives a
/// `View<T, R>` of a Tensor or a View, and a `std::span<T>` of a std::vector or a std::span. Copies nothing. The array
/// must outlive the call. The call throws InvalidArgument if another argument overlaps the array, since one shard would
/// write what another one reads. The same array, also split by rows, is allowed. The call throws DeviceMismatch if the
/// array is not in the memory of the devices.
template <class X>
auto inout(X&& value) {
  static_assert(detail::WritableRows<X>,
                "fanout: inout(x) is for an array of yours that can be written and outlives the call: a Tensor, a "
                "std::vector, a View<T, R> or a std::span<T>, not const and not a temporary that owns its elements");
  if constexpr (detail::WritableRows<X>) return detail::InOut<X>{std::forward<X>(value)};
}

}}  // namespace fanout::v0
