// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/array/view.hpp>

namespace fanout { inline namespace v0 {

// Arrays as text. No other header includes this one: <ostream> is expensive.

namespace detail {

/// A Tensor or a View whose elements can be written to a stream.
template <class X>
concept PrintableArray = ContiguousArray<X> && requires(std::ostream& out, const typename X::value_type& element) {
  out << element;
};

/// How many elements of each axis are printed.
inline constexpr std::size_t most_printed = 6;

template <class T, std::size_t R>
void print_elements(std::ostream& out, const View<const T, R>& x) {
  const std::size_t printed = std::min(x.extent(0), most_printed);
  out << '{';
  for (std::size_t i = 0; i < printed; ++i) {
    out << (i == 0 ? "" : ", ");
    if constexpr (R > 1) {
      print_elements(out, x.row(i));
    } else if constexpr (std::integral<T>) {
      out << +x[i];  // promoted, so that an int8_t is not printed as a letter
    } else {
      out << x[i];
    }
  }
  out << (printed < x.extent(0) ? ", ...}" : "}");
}

}  // namespace detail

/// Writes the extents and the first six elements of each axis: `[2, 3] {{1, 2, 3}, {4, 5, 6}}`. Of an array in another
/// memory, the first rows are copied to the host. Throws DeviceMismatch if fanout knows no transfer from that memory.
template <detail::PrintableArray X>
std::ostream& operator<<(std::ostream& out, const X& x) {
  const View<const typename X::value_type, X::rank> all = x;
  out << to_string(all.extents()) << ' ';
  if (all.space() == host_memory) {
    detail::print_elements(out, all);
  } else {
    // One row more than is printed shows whether the text ends with `...`.
    const auto rows = to_host(all.rows({0, std::min(all.extent(0), detail::most_printed + 1)}));
    detail::print_elements(out, std::as_const(rows).view());
  }
  return out;
}

/// The text of operator<<, as a string.
template <detail::PrintableArray X>
std::string to_string(const X& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

}}  // namespace fanout::v0
