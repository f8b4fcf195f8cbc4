// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <fanout/base/annotate.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout::inline v0 {

namespace detail {

/// In place of what would borrow from a temporary. Not deleted, since no compiler says why a function is; so a question
/// whether the conversion exists is answered with yes, and it is refused where it is used.
template <class Borrowed>
Borrowed refuse_view_of_temporary() {
  static_assert(sizeof(Borrowed) == 0,
                "fanout: a view of a temporary would show memory that is gone; give the temporary a name that lives "
                "as long as the view");
  return {};
}

}  // namespace detail

/// Borrows a contiguous, row-major array of R axes; `View<const T, R>` only reads it. A pointer with a shape: it owns
/// nothing, copying it copies no element, and it must not outlive what it shows. Works in kernels.
template <class T, std::size_t R>
class View {
  static_assert(std::is_trivially_copyable_v<T>, "fanout: the elements of an array are trivially copyable");

 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  static constexpr std::size_t rank = R;

  View() = default;

  /// `View<const float, 2>{pointer, rows, columns}`: the caller vouches for the memory behind the pointer.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  explicit View(T* data, I... extents) : View(data, checked_extents(sizeof(T), extents...)) {}

  FANOUT_HOST_DEVICE constexpr View(T* data, const Extents<R>& extents, MemorySpace space = host_memory) noexcept
      : data_(data), extents_(extents), space_(space) {}

  template <std::integral... I>
  View(std::nullptr_t, I...) = delete;

  /// A view that writes is also one that reads.
  template <class U>
    requires(std::is_const_v<T>&& std::same_as<U, value_type>)
  FANOUT_HOST_DEVICE constexpr View(
      const View<U, R>& other) noexcept  // NOLINT(google-explicit-constructor): as T* to const T*
      : View(other.data(), other.extents(), other.space()) {}

  /// A span of host memory, as an array of one axis.
  template <class U, std::size_t N>
    requires(R == 1 && std::convertible_to<std::span<U, N>, std::span<T>>)
  View(std::span<U, N> elements)
  noexcept  // NOLINT(google-explicit-constructor): both borrow
      : View(elements.data(), Extents<1>{elements.size()}) {}

  /// A vector or an array in host memory, as its elements in a row.
  template <class Range>
    requires(R == 1 && std::convertible_to<Range&, std::span<T>> && !requires { Range::rank; })
  View(Range& range)  // NOLINT(google-explicit-constructor): as std::span
      : View(std::span<T>(range).data(), std::span<T>(range).size()) {}
  template <class Range>
    requires(
        R == 1 && std::convertible_to<Range&, std::span<T>> && !requires { Range::rank; } &&
        requires(Range & range) { range.begin(); })
  View(const Range&&) : View(detail::refuse_view_of_temporary<View>()) {}  // NOLINT(google-explicit-constructor)

  FANOUT_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
  FANOUT_HOST_DEVICE constexpr const Extents<R>& extents() const noexcept { return extents_; }
  FANOUT_HOST_DEVICE constexpr std::size_t extent(std::size_t axis) const noexcept {
    assert(axis < R);
    return extents_[axis];
  }
  FANOUT_HOST_DEVICE constexpr std::size_t size() const noexcept { return extents_.size(); }
  FANOUT_HOST_DEVICE constexpr bool empty() const noexcept { return size() == 0; }
  FANOUT_HOST_DEVICE constexpr MemorySpace space() const noexcept { return space_; }

  /// The element at these indices. Where the memory is not the caller's, reading the reference is an access violation;
  /// builds with assertions check the indices.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  FANOUT_HOST_DEVICE constexpr T& operator()(I... indices) const noexcept {
    const std::size_t at[R] = {static_cast<std::size_t>(indices)...};
    std::size_t offset = 0;
    for (std::size_t axis = 0; axis < R; ++axis) {
      assert(at[axis] < extents_[axis]);
      offset = offset * extents_[axis] + at[axis];
    }
    return data_[offset];
  }

  FANOUT_HOST_DEVICE constexpr T& operator[](std::size_t i) const noexcept requires(R == 1) {
    assert(i < extents_[0]);
    return data_[i];
  }

  /// One row, as an array of one axis less.
  FANOUT_HOST_DEVICE constexpr View<T, (R > 1 ? R - 1 : 1)> row(std::size_t i) const noexcept requires(R > 1) {
    assert(i < extents_[0]);
    Extents<(R > 1 ? R - 1 : 1)> rest;
    for (std::size_t axis = 1; axis < R; ++axis) rest[axis - 1] = extents_[axis];
    return {data_ + i * extents_.row_size(), rest, space_};
  }

  /// Some of the rows.
  FANOUT_HOST_DEVICE constexpr View rows(RowRange range) const noexcept {
    assert(range.begin <= range.end && range.end <= extents_[0]);
    return {range.size() == 0 ? data_ : data_ + range.begin * extents_.row_size(), extents_.with_rows(range.size()),
            space_};
  }

  /// All elements in memory order. Host memory only, like begin() and end().
  std::span<T> values() const noexcept { return {data_, size()}; }
  constexpr T* begin() const noexcept { return data_; }
  constexpr T* end() const noexcept { return data_ + size(); }

 private:
  T* data_ = nullptr;
  Extents<R> extents_{};
  MemorySpace space_ = host_memory;
};

namespace detail {

/// What only borrows an array: a View, or what stands in for one.
template <class X>
concept BorrowsArray = requires {
  X::rank;
  requires std::is_convertible_v < const X*, const View<typename X::element_type, X::rank>
  * > ;
};

}  // namespace detail

template <class T, std::size_t R>
struct leaf_traits<View<T, R>> {
  using piece_type = View<const T, R>;
  static std::size_t rows(const View<T, R>& view) { return view.extent(0); }
  static piece_type piece(const View<T, R>& view, std::size_t begin, std::size_t end) {
    return piece_type(view).rows({begin, end});
  }
};

}  // namespace fanout::inline v0
