// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fanout/base/annotate.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

/// The shape of an array: the number of elements along each of R axes, the slowest axis first. Axis 0 counts the rows.
template <std::size_t R>
struct Extents {
  static_assert(R >= 1, "fanout: an array has at least one axis; a single number is a scalar");

  std::size_t values[R]{};

  /// For structured bindings: `auto [rows, columns] = x.extents();`
  template <std::size_t Axis>
  FANOUT_HOST_DEVICE constexpr std::size_t& get() & noexcept {
    return values[Axis];
  }
  template <std::size_t Axis>
  FANOUT_HOST_DEVICE constexpr const std::size_t& get() const& noexcept {
    return values[Axis];
  }
  template <std::size_t Axis>
  FANOUT_HOST_DEVICE constexpr std::size_t get() const&& noexcept {
    return values[Axis];
  }

  FANOUT_HOST_DEVICE constexpr std::size_t operator[](std::size_t axis) const noexcept { return values[axis]; }
  FANOUT_HOST_DEVICE constexpr std::size_t& operator[](std::size_t axis) noexcept { return values[axis]; }

  /// The number of elements of the array.
  FANOUT_HOST_DEVICE constexpr std::size_t size() const noexcept { return values[0] * row_size(); }

  /// The number of elements of one row: of all axes but the first.
  FANOUT_HOST_DEVICE constexpr std::size_t row_size() const noexcept {
    std::size_t size = 1;
    for (std::size_t axis = 1; axis < R; ++axis) size *= values[axis];
    return size;
  }

  /// The same row shape with another number of rows.
  FANOUT_HOST_DEVICE constexpr Extents with_rows(std::size_t rows) const noexcept {
    Extents result = *this;
    result.values[0] = rows;
    return result;
  }

  FANOUT_HOST_DEVICE friend constexpr bool operator==(const Extents& a, const Extents& b) noexcept {
    for (std::size_t axis = 0; axis < R; ++axis) {
      if (a.values[axis] != b.values[axis]) return false;
    }
    return true;
  }
};

namespace detail {

[[gnu::cold]] FANOUT_INLINE std::string extents_text(const std::size_t* extents, std::size_t rank);

}  // namespace detail

/// The extents as text: `[15, 5]`.
template <std::size_t R>
std::string to_string(const Extents<R>& extents) {
  return detail::extents_text(extents.values, R);
}

namespace detail {

// Takes any integer, so that no extent in braces is narrowed: `x({rows, 5})` with signed and unsigned ones.
#if defined(__SIZEOF_INT128__)
__extension__ using AnyInteger = __int128;
#else
using AnyInteger = long long;
#endif

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_uncountable(std::string_view found);

/// Returns the extents. Throws ShapeMismatch if an array of that shape, with elements of `element_size` bytes, has more
/// than PTRDIFF_MAX bytes.
template <std::size_t R>
constexpr Extents<R> checked_extents(std::size_t element_size, const Extents<R>& extents) {
  // An extent of 0 counts as 1 here, so that the other extents are checked, too.
  std::size_t bytes = element_size;
  for (const std::size_t extent : extents.values) {
    if (extent > 1 && bytes > static_cast<std::size_t>(PTRDIFF_MAX) / extent) {
      refuse_uncountable(to_string(extents));
    }
    if (extent > 1) bytes *= extent;
  }
  return extents;
}

/// The same for extents of any integer types. Throws ShapeMismatch also for a negative one.
template <std::integral... I>
constexpr Extents<sizeof...(I)> checked_extents(std::size_t element_size, I... extents) {
  ((std::cmp_less(extents, 0) ? refuse_uncountable(std::to_string(extents)) : void()), ...);
  return checked_extents(element_size, Extents<sizeof...(I)>{static_cast<std::size_t>(extents)...});
}

/// The same for extents in braces.
template <std::size_t R>
constexpr Extents<R> checked_extents(std::size_t element_size, const AnyInteger (&extents)[R]) {
  Extents<R> result;
  for (std::size_t axis = 0; axis < R; ++axis) {
    if (extents[axis] < 0) refuse_uncountable(std::to_string(static_cast<long long>(extents[axis])));
    result.values[axis] = static_cast<std::size_t>(extents[axis]);
  }
  return checked_extents(element_size, result);
}

}  // namespace detail
}}  // namespace fanout::v0

template <std::size_t R>
struct std::tuple_size<fanout::Extents<R>> : std::integral_constant<std::size_t, R> {};
template <std::size_t Axis, std::size_t R>
struct std::tuple_element<Axis, fanout::Extents<R>> {
  using type = std::size_t;
};

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/extents.ipp>
#endif
