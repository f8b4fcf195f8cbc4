// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/view.hpp>

namespace fanout::inline v0 {

/// Owns a contiguous, row-major array of R axes in one memory, aligned to 64 bytes. Copying copies the elements; moving
/// leaves an empty tensor (no rows). T is any trivially copyable type.
template <class T, std::size_t R>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "fanout: the elements of a tensor are trivially copyable and not const");
  static_assert(alignof(T) <= memory_alignment, "fanout: the elements of a tensor are aligned to 64 bytes or less");

 public:
  using element_type = T;
  using value_type = T;
  static constexpr std::size_t rank = R;

  /// No rows, no memory.
  Tensor() noexcept = default;

  /// All elements zero. Any integers will do as extents. Throws ShapeMismatch and OutOfMemory.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  explicit Tensor(I... extents) : Tensor(checked_extents(sizeof(T), extents...)) {}
  explicit Tensor(const Extents<R>& extents, const Memory& memory = {}) : Tensor(uninitialized(extents, memory)) {
    storage_.clear();
  }

  /// A copy of what the view shows, in the view's memory, which `operations` are for.
  explicit Tensor(View<const T, R> view, const MemoryOperations& operations = host_memory_operations)
      : Tensor(uninitialized(view.extents(), {view.space(), &operations})) {
    operations.copy(view.space(), data(), view.data(), storage_.bytes());
  }

  /// Elements that are not set to anything.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  static Tensor uninitialized(I... extents) { return uninitialized(checked_extents(sizeof(T), extents...), Memory{}); }
  static Tensor uninitialized(const Extents<R>& extents, const Memory& memory) {
    return Tensor(Storage(memory, checked_extents(sizeof(T), extents).size() * sizeof(T)), extents);
  }

  /// Takes over host memory that others made: `deleter(pointer)` is called once, when the tensor lets go of it. If
  /// making the tensor throws, the deleter has been called.
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
    static constexpr MemoryOperations operations{host_memory_operations.allocate, &Adopted::release,
                                                 host_memory_operations.copy, host_memory_operations.clear,
                                                 &host_memory_operations};
    try {
      const Extents<R> shape = checked_extents(sizeof(T), extents...);
      auto* owner = new Adopted{std::move(deleter)};  // moved from only once there is memory for it
      return Tensor(Storage({host_memory, &operations}, pointer, shape.size() * sizeof(T), owner), shape);
    } catch (...) {
      deleter(pointer);
      throw;
    }
  }

  /// A tensor of these bytes. `storage` holds `extents.size()` elements.
  Tensor(Storage storage, const Extents<R>& extents) noexcept : storage_(std::move(storage)), extents_(extents) {}

  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&& other) noexcept
      : storage_(std::move(other.storage_)), extents_(detail::exchange(other.extents_, Extents<R>{})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    storage_ = std::move(other.storage_);
    extents_ = detail::exchange(other.extents_, Extents<R>{});
    return *this;
  }
  ~Tensor() = default;

  T* data() noexcept { return static_cast<T*>(storage_.data()); }
  const T* data() const noexcept { return static_cast<const T*>(storage_.data()); }
  const Extents<R>& extents() const noexcept { return extents_; }
  std::size_t extent(std::size_t axis) const noexcept { return view().extent(axis); }
  std::size_t size() const noexcept { return extents_.size(); }
  bool empty() const noexcept { return size() == 0; }
  MemorySpace space() const noexcept { return storage_.space(); }
  const Storage& storage() const noexcept { return storage_; }

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

  /// Elements, rows and ranges of a tensor in host memory, checked as View checks them.
  template <std::integral... I>
    requires(sizeof...(I) == R)
  T& operator()(I... indices) { return reach().view()(indices...); }
  template <std::integral... I>
    requires(sizeof...(I) == R)
  const T& operator()(I... indices) const { return reach().view()(indices...); }
  T& operator[](std::size_t i) requires(R == 1) { return reach().view()[i]; }
  const T& operator[](std::size_t i) const requires(R == 1) { return reach().view()[i]; }
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

  std::span<T> values() & { return reach().view().values(); }
  std::span<const T> values() const& { return reach().view().values(); }
  template <class Borrowed = std::span<const T>>
  Borrowed values() const&& {
    return detail::refuse_view_of_temporary<Borrowed>();
  }
  T* begin() { return reach().data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return reach().data(); }
  const T* end() const { return data() + size(); }

 private:
  /// Builds with assertions refuse to touch the elements of another memory from the host.
  Tensor& reach() {
    std::as_const(*this).reach();
    return *this;
  }
  const Tensor& reach() const {
#if !defined(NDEBUG)
    if (!(space() == host_memory)) {
      throw DeviceMismatch(
          explain({.what = detail::two_devices(host_memory, space()) + ": elements of a tensor used from the host",
                   .expected = to_string(host_memory),
                   .found = to_string(space()),
                   .advice = "copy the tensor to the host first: to_host(x)"}));
    }
#endif
    return *this;
  }

  Storage storage_;
  Extents<R> extents_{};
};

template <class T, std::size_t R>
struct leaf_traits<Tensor<T, R>> {
  using piece_type = View<const T, R>;
  static std::size_t rows(const Tensor<T, R>& tensor) { return tensor.extent(0); }
  static piece_type piece(const Tensor<T, R>& tensor, std::size_t begin, std::size_t end) {
    return tensor.rows({begin, end});
  }
};

}  // namespace fanout::inline v0
