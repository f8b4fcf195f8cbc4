// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/base/annotate.hpp>
#include <fanout/base/checks.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Refuses a view of a temporary with a message, which a deleted function cannot give. The conversion exists, so traits
/// say yes; to use it is the error.
template <class Borrowed>
Borrowed refuse_view_of_temporary() {
  static_assert(sizeof(Borrowed) == 0,
                "fanout: a view of a temporary would dangle; store the temporary in a variable that outlives the view");
  return {};
}

template <std::size_t R>
[[noreturn]] void refuse_index(const std::size_t (&at)[R], const Extents<R>& extents) {
  Extents<R> found;
  for (std::size_t axis = 0; axis < R; ++axis) found[axis] = at[axis];
  throw InvalidArgument(explain({.what = "an index outside of its array",
                                 .expected = Text() << "indices below the extents " << extents,
                                 .found = to_string(found)}));
}

// Whether this is compiled for a kernel, which cannot throw.
#if defined(__CUDA_ARCH__)
inline constexpr bool in_kernel = true;
#else
inline constexpr bool in_kernel = false;
#endif

/// If FANOUT_CHECKS is 1, throws InvalidArgument for an index outside of `extents`. In kernels it is an assertion.
template <std::size_t R>
FANOUT_HOST_DEVICE constexpr void check_index([[maybe_unused]] const std::size_t (&at)[R],
                                              [[maybe_unused]] const Extents<R>& extents) {
  for (std::size_t axis = 0; FANOUT_CHECKS && axis < R; ++axis) {
    if constexpr (in_kernel) {
      assert(at[axis] < extents[axis]);
    } else {
      if (at[axis] >= extents[axis]) refuse_index(at, extents);
    }
  }
}

/// The offset of an element in a contiguous, row-major array, in elements.
template <std::size_t R>
FANOUT_HOST_DEVICE constexpr std::size_t element_offset(const std::size_t (&at)[R], const Extents<R>& extents) {
  check_index(at, extents);
  std::size_t offset = at[0];
  for (std::size_t axis = 1; axis < R; ++axis) offset = offset * extents[axis] + at[axis];
  return offset;
}

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_rows(const RowRange& range, std::size_t rows);

/// Throws InvalidArgument for rows outside of an array of `rows` rows. In kernels it is an assertion.
// A template, so that the compiler of a kernel leaves out the branch for the host.
template <bool asserts = in_kernel>
FANOUT_HOST_DEVICE constexpr void check_rows(const RowRange& range, std::size_t rows) {
  if constexpr (asserts) {
    assert(range.first <= range.last && range.last <= rows);
  } else {
    if (range.first > range.last || range.last > rows) refuse_rows(range, rows);
  }
}

template <std::size_t From, std::size_t To>
[[noreturn]] void refuse_reshape(const Extents<From>& from, const Extents<To>& to) {
  throw ShapeMismatch(explain({.what = "an array was reshaped to another number of elements",
                               .where = "reshape",
                               .expected = Text() << from.size() << " elements, those of " << from,
                               .found = Text() << to.size() << ", those of " << to}));
}

}  // namespace detail

/// A pointer with a shape: borrows a contiguous, row-major array of R axes, rows first. `View<const T, R>` only reads
/// it. Copying a view copies no element. A view must not outlive the elements. Works in kernels.
template <class T, std::size_t R>
class View {
  static_assert(std::is_trivially_copyable_v<T>, "fanout: the elements of an array are trivially copyable");

 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  static constexpr std::size_t rank = R;

  View() = default;

  /// `View<const float, 2>{pointer, rows, columns}`, in host memory. The memory must hold rows * columns elements.
  /// Throws ShapeMismatch for a negative extent, or if the bytes cannot be counted.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  explicit View(T* data, I... extents) : View(data, detail::checked_extents(sizeof(T), extents...)) {}

  FANOUT_HOST_DEVICE constexpr View(T* data, const Extents<R>& extents, MemorySpace space = host_memory) noexcept
      : data_(data), extents_(extents), space_(space) {}

  template <std::integral... I>
  View(std::nullptr_t, I...) = delete;

  /// A writable view converts to a read-only one.
  template <class U>
    requires(std::is_const_v<T>&& std::same_as<U, value_type>)
  FANOUT_HOST_DEVICE constexpr View(
      const View<U, R>& other) noexcept  // NOLINT(google-explicit-constructor): as T* to const T*
      : View(other.data(), other.extents(), other.space()) {}

  /// A span of host memory as an array of one axis. Borrows what the span borrows.
  template <class U, std::size_t N>
    requires(R == 1 && std::convertible_to<std::span<U, N>, std::span<T>>)
  View(std::span<U, N> elements)
  noexcept  // NOLINT(google-explicit-constructor): both borrow
      : View(elements.data(), Extents<1>{elements.size()}) {}

  /// A vector or an array in host memory as an array of one axis. Borrows it. A temporary does not compile.
  template <class Range>
    requires(R == 1 && std::convertible_to<Range&, std::span<T>> && !requires { Range::rank; })
  View(Range& range)  // NOLINT(google-explicit-constructor): as std::span
      : View(std::span<T>(range).data(), std::span<T>(range).size()) {}
  template <class Range>
    requires(
        R == 1 && std::convertible_to<Range&, std::span<T>> && !requires { Range::rank; } &&
        requires(Range & range) { range.begin(); })
  View(const Range&&) : View(detail::refuse_view_of_temporary<View>()) {}  // NOLINT(google-explicit-constructor)

  /// The first element, in the memory space(). It need not be accessible to the caller.
  FANOUT_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
  /// Elements per axis, rows first. With FANOUT_CHECKS, extent() throws InvalidArgument unless axis < R.
  FANOUT_HOST_DEVICE constexpr const Extents<R>& extents() const noexcept { return extents_; }
  FANOUT_HOST_DEVICE constexpr std::size_t extent(std::size_t axis) const {
    detail::check_index({axis}, Extents<1>{{R}});
    return extents_[axis];
  }
  FANOUT_HOST_DEVICE constexpr std::size_t size() const noexcept { return extents_.size(); }
  FANOUT_HOST_DEVICE constexpr bool empty() const noexcept { return size() == 0; }
  FANOUT_HOST_DEVICE constexpr MemorySpace space() const noexcept { return space_; }

  /// The element at these indices, one per axis, rows first: `x(row, column)`. The memory must be accessible to the
  /// caller. If FANOUT_CHECKS is 1, throws InvalidArgument for an index out of range. Otherwise checks nothing.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  FANOUT_HOST_DEVICE constexpr T& operator()(I... indices) const {
    return data_[detail::element_offset({static_cast<std::size_t>(indices)...}, extents_)];
  }

  /// `x[i]`: element i of an array of one axis, else row i. Checked as operator() is.
  FANOUT_HOST_DEVICE constexpr T& operator[](std::size_t i) const requires(R == 1) {
    detail::check_index({i}, extents_);
    return data_[i];
  }
  FANOUT_HOST_DEVICE constexpr View<T, (R > 1 ? R - 1 : 1)> operator[](std::size_t i) const requires(R > 1) {
    return row(i);
  }

  /// Row i as a View of R - 1 axes, of the same elements. Checked as operator() is.
  FANOUT_HOST_DEVICE constexpr View<T, (R > 1 ? R - 1 : 1)> row(std::size_t i) const requires(R > 1) {
    detail::check_index({i}, Extents<1>{{extents_[0]}});
    Extents<(R > 1 ? R - 1 : 1)> rest;
    for (std::size_t axis = 1; axis < R; ++axis) rest[axis - 1] = extents_[axis];
    return {data_ + i * extents_.row_size(), rest, space_};
  }

  /// The rows [first, last) as a View of the same elements. Throws InvalidArgument if the array does not have them,
  /// also without FANOUT_CHECKS.
  FANOUT_HOST_DEVICE constexpr View rows(RowRange range) const {
    detail::check_rows(range, extents_[0]);
    return {range.size() == 0 ? data_ : data_ + range.first * extents_.row_size(), extents_.with_rows(range.size()),
            space_};
  }

  /// The same elements in memory order with other extents: `x.reshape(3, 4)`, `x.reshape({rows, 4})`. Copies nothing.
  /// Throws ShapeMismatch if the number of elements differs. Host code only.
  template <std::integral... I>
    requires(sizeof...(I) > 0)
  View<T, sizeof...(I)> reshape(I... extents)
  const { return reshape(detail::checked_extents(sizeof(T), extents...)); }
  template <std::size_t N>
  View<T, N> reshape(const detail::AnyInteger (&extents)[N]) const {
    return reshape(detail::checked_extents(sizeof(T), extents));
  }
  template <std::size_t N>
  View<T, N> reshape(const Extents<N>& extents) const {
    if (extents.size() != size()) detail::refuse_reshape(extents_, extents);
    return {data_, extents, space_};
  }

  /// All elements in memory order, the last axis fastest. The memory must be the host's, as for begin() and end().
  /// Nothing checks that.
  std::span<T> values() const noexcept { return {data_, size()}; }
  constexpr T* begin() const noexcept { return data_; }
  constexpr T* end() const noexcept { return data_ + size(); }

 private:
  T* data_ = nullptr;
  Extents<R> extents_{};
  MemorySpace space_ = host_memory;
};

/// View<const T, R> as a template with the parameters of Tensor, for structs that take the kind of their arrays as a
/// parameter.
template <class T, std::size_t R>
using ConstView = View<const T, R>;

/// `View v{pointer, rows, columns}`, and `View v = numbers` for a vector, an array or a span. A view of a const vector
/// only reads.
template <class T, std::integral... I>
  requires(sizeof...(I) > 0)
View(T*, I...)
->View<T, sizeof...(I)>;
template <class Range>
  requires(!requires { std::remove_cvref_t<Range>::rank; })
View(Range&&)
->View<typename decltype(std::span(std::declval<Range&>()))::element_type, 1>;

namespace detail {

/// A View, or a class derived from it, as Output is.
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

namespace detail {

/// A Tensor, a View or an Output: converts to a View that only reads.
template <class X>
concept ContiguousArray = requires {
  X::rank;
  requires std::convertible_to<const X&, View<const typename X::value_type, X::rank>>;
};

/// Throws DeviceMismatch if the host must not use this memory in place. Call it for other memory than the host's.
[[gnu::cold]] FANOUT_INLINE void check_host_access(const MemorySpace& space);

}  // namespace detail

/// True if both arrays have the same extents and equal elements. NaN equals nothing. Throws DeviceMismatch if an array
/// is in memory that the host cannot use.
template <detail::ContiguousArray A, detail::ContiguousArray B>
  requires(A::rank == B::rank && std::same_as<typename A::value_type, typename B::value_type> &&
           std::equality_comparable<typename A::value_type>)
bool operator==(const A& a, const B& b) {
  if (!(a.space() == host_memory)) detail::check_host_access(a.space());
  if (!(b.space() == host_memory)) detail::check_host_access(b.space());
  if (!(a.extents() == b.extents())) return false;
  const auto* const first = a.data();
  const auto* const second = b.data();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(first[i] == second[i])) return false;
  }
  return true;
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/array/view.ipp>
#endif
