// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/array/view.hpp>
#include <fanout/base/checks.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 {

/// Owns a contiguous, row-major array of R axes in one memory. Rows are the first axis, which is the slowest. Memory
/// that fanout allocates is aligned to 64 bytes. Copying copies the elements, within their memory. Moving leaves an
/// empty tensor (no rows). T is any trivially copyable type.
template <class T, std::size_t R>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "fanout: the elements of a tensor are trivially copyable and not const");
  static_assert(alignof(T) <= backend::memory_alignment,
                "fanout: the elements of a tensor are aligned to 64 bytes or less");

 public:
  using element_type = T;
  using value_type = T;
  static constexpr std::size_t rank = R;

  /// An empty tensor in host memory: all extents are zero, and no memory is allocated.
  Tensor() noexcept = default;

  /// All elements zero, in host memory unless `memory` says otherwise: `x(rows, 5)`, `x({rows, 5})` or `x{rows, 5}`,
  /// with integers of any type. Braces hold extents, never elements: `Tensor<int, 1> v{3}` has three zeros. Throws
  /// ShapeMismatch if an extent is negative or the bytes cannot be counted. Throws OutOfMemory.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  explicit Tensor(I... extents) : Tensor(detail::checked_extents(sizeof(T), extents...)) {}
  template <std::size_t N>
  explicit Tensor(const detail::AnyInteger (&extents)[N], const backend::Memory& memory = {})
      : Tensor(axes(extents), memory) {}
  explicit Tensor(const Extents<R>& extents, const backend::Memory& memory = {})
      : Tensor(uninitialized(extents, memory)) {
    storage_.clear();
  }

  /// Copies the view's elements, in the view's memory. `operations` must be those of that memory. Throws OutOfMemory.
  explicit Tensor(View<const T, R> view, const backend::MemoryOperations& operations = backend::host_memory_operations)
      : Tensor(uninitialized(view.extents(), {view.space(), &operations})) {
    operations.copy(view.space(), data(), view.data(), storage_.bytes());
  }

  /// Allocates without setting the elements. Throws as the constructors do.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  static Tensor uninitialized(I... extents) { return uninitialized(detail::checked_extents(sizeof(T), extents...)); }
  template <std::size_t N>
  static Tensor uninitialized(const detail::AnyInteger (&extents)[N], const backend::Memory& memory = {}) {
    return uninitialized(axes(extents), memory);
  }
  static Tensor uninitialized(const Extents<R>& extents, const backend::Memory& memory = {}) {
    return Tensor(detail::Storage(memory, detail::checked_extents(sizeof(T), extents).size() * sizeof(T)), extents);
  }

  /// All elements equal to `value`, in host memory: `Tensor<float, 2>::full({rows, 5}, 1)`.
  template <std::size_t N>
  static Tensor full(const detail::AnyInteger (&extents)[N], const T& value) {
    return full(axes(extents), value);
  }
  static Tensor full(const Extents<R>& extents, const T& value) {
    Tensor tensor = uninitialized(extents);
    for (T& element : tensor) element = value;
    return tensor;
  }

  /// Takes over host memory of the given extents, without a copy. Calls `deleter(pointer)` once: when the tensor
  /// releases the memory, or before this throws. Throws ShapeMismatch and what moving the deleter throws.
  template <class Deleter, std::integral... I>
    requires(sizeof...(I) == R && std::invocable<Deleter&, T*>)
  static Tensor adopt(T* pointer, Deleter deleter, I... extents) {
    struct Adopted {
      Deleter deleter;
      static void release(const MemorySpace&, void* data, std::size_t, void* owner) noexcept {
        auto* adopted = static_cast<Adopted*>(owner);
        adopted->deleter(static_cast<T*>(data));
        delete adopted;
      }
    };
    static constexpr backend::MemoryOperations operations{
        backend::host_memory_operations.allocate, &Adopted::release, backend::host_memory_operations.copy,
        backend::host_memory_operations.clear, &backend::host_memory_operations};
    try {
      const Extents<R> shape = detail::checked_extents(sizeof(T), extents...);
      auto* owner = new Adopted{std::move(deleter)};  // new allocates before it moves the deleter
      return Tensor(detail::Storage({host_memory, &operations}, pointer, shape.size() * sizeof(T), owner), shape);
    } catch (...) {
      deleter(pointer);
      throw;
    }
  }

  /// For adapters: a tensor over `storage`, which must hold `extents.size()` elements.
  Tensor(detail::Storage storage, const Extents<R>& extents) noexcept
      : storage_(std::move(storage)), extents_(extents) {}

  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&& other) noexcept
      : storage_(std::move(other.storage_)), extents_(std::exchange(other.extents_, Extents<R>{})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    storage_ = std::move(other.storage_);
    extents_ = std::exchange(other.extents_, Extents<R>{});
    return *this;
  }
  ~Tensor() = default;

  /// Copies the view's elements and extents, into the view's memory. The view may be a part of this tensor. Keeps the
  /// tensor's own memory if the space and the number of bytes are the same. Throws OutOfMemory, and DeviceMismatch if
  /// fanout does not know the view's memory.
  template <class V>
    requires(std::same_as<V, View<T, R>> || std::same_as<V, View<const T, R>>)
  Tensor& operator=(const V& view) {
    const std::size_t bytes = view.size() * sizeof(T);
    if (bytes != storage_.bytes() || !(view.space() == space())) {
      const backend::Memory memory = view.space() == space() ? storage_.memory() : backend::memory_of(view.space());
      if (memory.operations == nullptr) detail::refuse_transfer(space(), view.space());
      return *this = Tensor(view, *memory.operations->fresh);
    }
    if (bytes != 0 && view.data() != data()) storage_.memory().operations->copy(space(), data(), view.data(), bytes);
    extents_ = view.extents();
    return *this;
  }

  /// The first element, in the memory space(). May be null if the tensor is empty.
  T* data() noexcept { return static_cast<T*>(storage_.data()); }
  const T* data() const noexcept { return static_cast<const T*>(storage_.data()); }
  /// Elements per axis, rows first. With FANOUT_CHECKS, extent() throws InvalidArgument unless axis < R.
  const Extents<R>& extents() const noexcept { return extents_; }
  std::size_t extent(std::size_t axis) const {
    detail::check_index({axis}, Extents<1>{{R}});
    return extents_[axis];
  }
  std::size_t size() const noexcept { return extents_.size(); }
  bool empty() const noexcept { return size() == 0; }
  MemorySpace space() const noexcept { return storage_.space(); }
  const detail::Storage& storage() const noexcept { return storage_; }

  /// Borrow the elements; a const tensor gives a view that only reads. A view is valid until the tensor's memory is
  /// released: by its destructor, or by an assignment that does not keep it. A view of a temporary does not compile.
  View<T, R> view() & noexcept { return {data(), extents_, space()}; }
  View<const T, R> view() const& noexcept { return {data(), extents_, space()}; }
  template <class Borrowed = View<const T, R>>
  Borrowed view() const&& {
    return detail::refuse_view_of_temporary<Borrowed>();
  }

  operator View<T, R>() & noexcept { return view(); }             // NOLINT(google-explicit-constructor)
  operator View<const T, R>() const& noexcept { return view(); }  // NOLINT(google-explicit-constructor)
  operator View<const T, R>() & noexcept { return view(); }       // NOLINT(google-explicit-constructor)
  template <class U>
    requires std::same_as<std::remove_const_t<U>, T>
  operator View<U, R>() const&& {  // NOLINT(google-explicit-constructor)
    return detail::refuse_view_of_temporary<View<U, R>>();
  }

  /// The element at these indices, one per axis, rows first: `x(row, column)`. The host must be able to use the
  /// tensor's memory: see MemoryOperations::host_access. If FANOUT_CHECKS is 1, throws InvalidArgument for an index out
  /// of range, and DeviceMismatch for memory that the host cannot use. Otherwise checks nothing.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  T& operator()(I... indices) { return data()[offset({static_cast<std::size_t>(indices)...})]; }
  template <std::integral... I>
    requires(sizeof...(I) == R)
  const T& operator()(I... indices) const { return data()[offset({static_cast<std::size_t>(indices)...})]; }

  /// `x[i]`: element i of a tensor of one axis, else row i as a View of R - 1 axes. Checked as operator() is. The row
  /// borrows this tensor.
  T& operator[](std::size_t i) & requires(R == 1) { return data()[offset({i})]; }
  const T& operator[](std::size_t i) const& requires(R == 1) { return data()[offset({i})]; }
  auto operator[](std::size_t i) & requires(R > 1) { return view().row(i); }
  auto operator[](std::size_t i) const& requires(R > 1) { return view().row(i); }
  template <class Borrowed = View<const T, R>>
  auto operator[](std::size_t i) const&& requires(R > 1) {
    return detail::refuse_view_of_temporary<Borrowed>().row(i);
  }

  /// As in View: row(i), rows(range) and reshape(extents...) borrow this tensor. They copy nothing.
  auto row(std::size_t i) & requires(R > 1) { return view().row(i); }
  auto row(std::size_t i) const& requires(R > 1) { return view().row(i); }
  template <class Borrowed = View<const T, R>>
  auto row(std::size_t i) const&& requires(R > 1) {
    return detail::refuse_view_of_temporary<Borrowed>().row(i);
  }
  View<T, R> rows(RowRange range) & { return view().rows(range); }
  View<const T, R> rows(RowRange range) const& { return view().rows(range); }
  template <class Borrowed = View<const T, R>>
  Borrowed rows(RowRange) const&& {
    return detail::refuse_view_of_temporary<Borrowed>();
  }
  auto reshape(std::integral auto... extents) & { return view().reshape(extents...); }
  auto reshape(std::integral auto... extents) const& { return view().reshape(extents...); }
  auto reshape(std::integral auto... extents) const&& {
    return detail::refuse_view_of_temporary<View<const T, R>>().reshape(extents...);
  }
  template <std::size_t N>
  auto reshape(const detail::AnyInteger (&extents)[N]) & {
    return view().reshape(extents);
  }
  template <std::size_t N>
  auto reshape(const detail::AnyInteger (&extents)[N]) const& {
    return view().reshape(extents);
  }
  template <std::size_t N>
  auto reshape(const detail::AnyInteger (&extents)[N]) const&& {
    return detail::refuse_view_of_temporary<View<const T, R>>().reshape(extents);
  }
  template <std::size_t N>
  auto reshape(const Extents<N>& extents) & {
    return view().reshape(extents);
  }
  template <std::size_t N>
  auto reshape(const Extents<N>& extents) const& {
    return view().reshape(extents);
  }
  template <std::size_t N>
  auto reshape(const Extents<N>& extents) const&& {
    return detail::refuse_view_of_temporary<View<const T, R>>().reshape(extents);
  }

  /// All elements in memory order, the last axis fastest. Borrows. Like begin(), throws DeviceMismatch if the host
  /// cannot use the tensor's memory.
  std::span<T> values() & { return {begin(), size()}; }
  std::span<const T> values() const& { return {begin(), size()}; }
  template <class Borrowed = std::span<const T>>
  Borrowed values() const&& {
    return detail::refuse_view_of_temporary<Borrowed>();
  }
  T* begin() {
    reach();
    return data();
  }
  T* end() { return data() + size(); }
  const T* begin() const {
    reach();
    return data();
  }
  const T* end() const { return data() + size(); }

 private:
  template <std::size_t N>
  static Extents<R> axes(const detail::AnyInteger (&extents)[N]) {
    static_assert(N == R, "fanout: a tensor takes one extent for each of its axes");
    if constexpr (N == R) return detail::checked_extents(sizeof(T), extents);
    __builtin_unreachable();  // the static_assert has failed; this avoids a second error
  }

  std::size_t offset(const std::size_t (&indices)[R]) const {
    if constexpr (FANOUT_CHECKS) reach();
    return detail::element_offset(indices, extents_);
  }

  void reach() const {
    if (!(space() == host_memory)) detail::check_host_access(space());
  }

  detail::Storage storage_;
  Extents<R> extents_{};
};

/// `View v = tensor` may write; a view of a const tensor only reads.
template <class T, std::size_t R>
View(Tensor<T, R>&) -> View<T, R>;
template <class T, std::size_t R>
View(const Tensor<T, R>&) -> View<const T, R>;

/// `Tensor x(view)` copies.
template <class T, std::size_t R>
Tensor(const View<T, R>&) -> Tensor<std::remove_const_t<T>, R>;

namespace detail {

/// Matches braces with rows of different lengths, to refuse them with a message.
template <class T>
struct RaggedRows {
  RaggedRows(std::initializer_list<std::initializer_list<T>>) {}
};

template <class T, std::size_t R>
Tensor<T, R> tensor_of(std::span<const T> values, const Extents<R>& extents) {
  if (values.size() != extents.size()) {
    throw ShapeMismatch(explain({.what = "the number of elements does not match the extents",
                                 .where = "tensor",
                                 .expected = Text() << extents.size() << " elements, those of " << extents,
                                 .found = Text() << values.size()}));
  }
  return Tensor<T, R>(View<const T, R>(values.data(), extents));
}

}  // namespace detail

/// A tensor of these elements, in host memory: `tensor<double>({{1, 2}, {3, 4}})` is [2, 2]. Each level of braces is an
/// axis, up to three. Rows of different lengths do not compile. nvcc takes the column `{{1}, {2}}` for one axis, with a
/// warning. `tensor<double>({1, 2}, {2, 1})` is the same everywhere. Throws OutOfMemory.
template <class T, std::size_t A>
Tensor<T, 1> tensor(const T (&values)[A]) {
  return detail::tensor_of<T, 1>(values, {{A}});
}
template <class T, std::size_t A, std::size_t B>
Tensor<T, 2> tensor(const T (&values)[A][B]) {
  return detail::tensor_of<T, 2>({&values[0][0], A * B}, {{A, B}});
}
template <class T, std::size_t A, std::size_t B, std::size_t C>
Tensor<T, 3> tensor(const T (&values)[A][B][C]) {
  return detail::tensor_of<T, 3>({&values[0][0][0], A * B * C}, {{A, B, C}});
}
#if !defined(__CUDACC__)  // nvcc finds this overload ambiguous, and refuses ragged rows with its own message
template <class T>
Tensor<T, 2> tensor(const detail::RaggedRows<T>&) {
  static_assert(sizeof(T) == 0, "fanout: all rows of a tensor must have the same length");
  return {};
}
#endif

/// A tensor of these elements, in host memory, with these extents: `tensor(numbers, {rows, 5})`. Copies the vector,
/// array or span in memory order. Throws ShapeMismatch if the number of elements does not fit the extents. Throws
/// OutOfMemory.
template <class Values, std::size_t R>
  requires requires(const Values& values) { std::span(values); }
auto tensor(const Values& values, const detail::AnyInteger (&extents)[R]) {
  using T = std::remove_cvref_t<decltype(std::span(values)[0])>;
  return detail::tensor_of<T, R>(std::span(values), detail::checked_extents(sizeof(T), extents));
}
template <class T, std::size_t N, std::size_t R>
Tensor<T, R> tensor(const T (&values)[N], const detail::AnyInteger (&extents)[R]) {
  return detail::tensor_of<T, R>(values, detail::checked_extents(sizeof(T), extents));
}

namespace detail {
template <class X>
inline constexpr bool is_tensor = false;
template <class T, std::size_t R>
inline constexpr bool is_tensor<Tensor<T, R>> = true;
}  // namespace detail

template <class T, std::size_t R>
struct leaf_traits<Tensor<T, R>> {
  using piece_type = View<const T, R>;
  static std::size_t rows(const Tensor<T, R>& tensor) { return tensor.extent(0); }
  static piece_type piece(const Tensor<T, R>& tensor, std::size_t begin, std::size_t end) {
    return tensor.rows({begin, end});
  }
};

}}  // namespace fanout::v0
