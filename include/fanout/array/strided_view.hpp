// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <fanout/array/view.hpp>
#include <fanout/base/annotate.hpp>
#include <fanout/memory/copy_rows.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 {

/// Borrows an array of R axes whose elements may have gaps between them, for example some columns of a matrix. It is a
/// type of its own, since most code needs the contiguous memory of a View. A `forward` that takes a StridedView gets a
/// split on any axis without a copy. It must not outlive the elements. Works in kernels.
template <class T, std::size_t R>
class StridedView {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  static constexpr std::size_t rank = R;

  StridedView() = default;

  /// All elements of a contiguous array.
  template <class U>
  requires std::convertible_to<U (*)[], T (*)[]> FANOUT_HOST_DEVICE constexpr explicit StridedView(
      const View<U, R>& view) noexcept
      : data_(view.data()), extents_(view.extents()), space_(view.space()) {
    std::size_t stride = 1;
    for (std::size_t axis = R; axis > 0; --axis) {
      strides_[axis - 1] = stride;
      stride *= extents_[axis - 1];
    }
  }

  /// `strides` count the elements from one index of an axis to the next. The caller must ensure that the memory holds
  /// all of them.
  FANOUT_HOST_DEVICE constexpr StridedView(T* data, const Extents<R>& extents, const Extents<R>& strides,
                                           MemorySpace space = host_memory) noexcept
      : data_(data), extents_(extents), strides_(strides), space_(space) {}

  /// A writable view converts to a read-only one.
  template <class U>
    requires(std::is_const_v<T>&& std::same_as<U, value_type>)
  FANOUT_HOST_DEVICE constexpr StridedView(
      const StridedView<U, R>& other) noexcept  // NOLINT(google-explicit-constructor): as T* to const T*
      : StridedView(other.data(), other.extents(), other.strides(), other.space()) {}

  /// The first element, in the memory space().
  FANOUT_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
  /// Elements per axis, rows first. With FANOUT_CHECKS, extent() and stride() throw InvalidArgument unless axis < R.
  FANOUT_HOST_DEVICE constexpr const Extents<R>& extents() const noexcept { return extents_; }
  FANOUT_HOST_DEVICE constexpr std::size_t extent(std::size_t axis) const {
    detail::check_index({axis}, Extents<1>{{R}});
    return extents_[axis];
  }
  /// Elements from one index of an axis to the next; bytes are sizeof(T) times as many.
  FANOUT_HOST_DEVICE constexpr const Extents<R>& strides() const noexcept { return strides_; }
  FANOUT_HOST_DEVICE constexpr std::size_t stride(std::size_t axis) const {
    detail::check_index({axis}, Extents<1>{{R}});
    return strides_[axis];
  }
  FANOUT_HOST_DEVICE constexpr std::size_t size() const noexcept { return extents_.size(); }
  FANOUT_HOST_DEVICE constexpr bool empty() const noexcept { return size() == 0; }
  FANOUT_HOST_DEVICE constexpr MemorySpace space() const noexcept { return space_; }

  /// The element at these indices, one per axis: `x(row, column)`. The memory must be accessible to the caller. If
  /// FANOUT_CHECKS is 1, throws InvalidArgument for an index out of range. Otherwise checks nothing.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  FANOUT_HOST_DEVICE constexpr T& operator()(I... indices) const {
    const std::size_t at[R] = {static_cast<std::size_t>(indices)...};
    detail::check_index(at, extents_);
    std::size_t offset = 0;
    for (std::size_t axis = 0; axis < R; ++axis) offset += at[axis] * strides_[axis];
    return data_[offset];
  }

  /// The indices [first, last) of one axis, as a view of R axes. Copies nothing. Throws InvalidArgument if the axis
  /// does not have them.
  FANOUT_HOST_DEVICE constexpr StridedView slice(std::size_t axis, RowRange range) const {
    detail::check_rows(range, extent(axis));
    StridedView result = *this;
    result.extents_[axis] = range.size();
    if (!result.empty()) result.data_ += range.first * strides_[axis];  // data_ may be null if it is empty
    return result;
  }

  /// Length of the innermost contiguous runs, in elements: size() for a contiguous array.
  FANOUT_HOST_DEVICE constexpr std::size_t run() const noexcept {
    std::size_t run = 1;
    for (std::size_t axis = R; axis > 0; --axis) {
      if (extents_[axis - 1] != 1 && strides_[axis - 1] != run) break;
      run *= extents_[axis - 1];
    }
    return run;
  }
  FANOUT_HOST_DEVICE constexpr bool is_contiguous() const noexcept { return empty() || run() == size(); }

 private:
  T* data_ = nullptr;
  Extents<R> extents_{};
  Extents<R> strides_{};
  MemorySpace space_ = host_memory;
};

namespace detail {

/// A strided array as rows of contiguous runs, which are repeated along the outer axes. A slice of one axis of a
/// contiguous array has no outer axes.
template <std::size_t R>
struct StridedRuns {
  std::size_t run;  ///< elements
  std::size_t rows;
  std::size_t pitch;  ///< from one row to the next, in elements
  std::size_t outer;  ///< number of axes that are repeated

  template <class T>
  explicit StridedRuns(const StridedView<T, R>& view) : run(view.run()), rows(1), pitch(run), outer(R) {
    for (std::size_t covered = 1; outer > 0 && covered * view.extent(outer - 1) <= run;) {
      covered *= view.extent(--outer);
    }
    for (; outer > 0; --outer) {
      if (rows != 1 && view.stride(outer - 1) != rows * pitch) return;
      if (rows == 1) pitch = view.stride(outer - 1);
      rows *= view.extent(outer - 1);
    }
  }
};

}  // namespace detail

/// Copies all elements to `to`, contiguous and in row-major order. `to` must be in the same memory space, and hold
/// from.size() elements. `operations` are those of that space. Returns when the copy is done in host memory; elsewhere
/// it is in order with the device's work.
template <class T, std::size_t R>
void pack(const backend::MemoryOperations& operations, std::remove_cv_t<T>* to, const StridedView<T, R>& from) {
  if (from.empty()) return;
  const detail::StridedRuns<R> runs(from);
  std::size_t at[R]{};
  for (;;) {
    const T* source = from.data();
    for (std::size_t axis = 0; axis < runs.outer; ++axis) source += at[axis] * from.stride(axis);
    if (from.space() == host_memory) {
      const detail::RowPart part{reinterpret_cast<const std::byte*>(source), runs.pitch * sizeof(T),
                                 runs.run * sizeof(T)};
      detail::copy_rows({reinterpret_cast<std::byte*>(to), runs.rows, &part, 1, part.bytes});
    } else {
      for (std::size_t row = 0; row < runs.rows; ++row) {
        operations.copy(from.space(), to + row * runs.run, source + row * runs.pitch, runs.run * sizeof(T));
      }
    }
    to += runs.rows * runs.run;
    std::size_t axis = runs.outer;
    while (axis > 0 && ++at[axis - 1] == from.extent(axis - 1)) at[--axis] = 0;
    if (axis == 0) return;
  }
}

template <class T, std::size_t R>
struct leaf_traits<StridedView<T, R>> {
  using piece_type = StridedView<const T, R>;
  static std::size_t rows(const StridedView<T, R>& view) { return view.extent(0); }
  static piece_type piece(const StridedView<T, R>& view, std::size_t begin, std::size_t end) {
    return piece_type(view).slice(0, {begin, end});
  }
};

}}  // namespace fanout::v0
