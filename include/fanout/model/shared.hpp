// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

/// True for a type whose members may be called from several threads at once, also those that are not const. The object
/// in a Shared<T> can then be changed. True for types with the interface of std::atomic. Specialise it to add one.
template <class T>
inline constexpr bool is_thread_safe = requires(T& x, const T& read) {
  { read.is_lock_free() } -> std::same_as<bool>;
  x.store(read.load());
};

namespace detail {

/// A pointer that shares ownership, as std::shared_ptr.
template <class P>
concept OwnsTogether = requires(const P& pointer) {
  pointer.use_count();
  {*pointer.get()};
};

}  // namespace detail

/// A field that the original and all replicas of a model share. Copies refer to one T, which is destroyed with the last
/// of them. The T is const, so that no replica changes what the others read, unless is_thread_safe<T>:
///
///     struct Model {
///       fanout::Shared<Vocabulary> words;          // made from a Vocabulary
///       fanout::Shared<std::atomic<long>> misses = fanout::Shared<std::atomic<long>>::make(0);
///       auto forward(std::span<const std::string> x) { ... words->find(x[0]) ... ++*misses ... }
///     };
///
/// To replace the T for all of them, assign a new Shared in update().
template <class T>
class Shared {
 public:
  /// T if is_thread_safe<T>, otherwise const T.
  using element_type = std::conditional_t<is_thread_safe<T>, T, const T>;

  /// Holds no object.
  constexpr Shared() noexcept = default;

  /// Takes over `value`.
  Shared(T value) requires std::move_constructible<T>  // NOLINT(google-explicit-constructor): is a T
      : Shared(make(std::move(value))) {}

  /// Shares the object of a std::shared_ptr<T> or a similar pointer, also to a type derived from T. Null gives no
  /// object.
  template <detail::OwnsTogether P>
    requires std::convertible_to<decltype(std::declval<const P&>().get()), element_type*> Shared(
        P pointer) {  // NOLINT(google-explicit-constructor): refers to the same
      if (pointer.get() != nullptr) block_ = new Holding<P>(std::move(pointer));
    }

  /// Makes the T in place. T need not be movable.
  template <class... A>
    requires std::constructible_from<T, A...>
  static Shared make(A&&... args) {
    Shared result;
    result.block_ = new Containing(std::forward<A>(args)...);
    return result;
  }

  Shared(const Shared& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, detail::MemoryOrder::relaxed);
  }
  Shared(Shared&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Shared() {
    if (block_ != nullptr && block_->owners.fetch_sub(1, detail::MemoryOrder::acq_rel) == 1) delete block_;
  }

  /// The object. There must be one.
  element_type& operator*() const noexcept { return *block_->object; }
  element_type* operator->() const noexcept { return block_->object; }
  /// The object, or null.
  element_type* get() const noexcept { return block_ == nullptr ? nullptr : block_->object; }
  explicit operator bool() const noexcept { return block_ != nullptr; }

 private:
  struct Block {
    explicit Block(element_type* shown) noexcept : object(shown) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    virtual ~Block() = default;
    element_type* const object;
    detail::Atomic<std::size_t> owners{1};
  };
  struct Containing final : Block {
    template <class... A>
    explicit Containing(A&&... args) : Block(&value), value(std::forward<A>(args)...) {}
    T value;
  };
  template <class P>
  struct Holding final : Block {
    explicit Holding(P&& from) : Block(from.get()), pointer(std::move(from)) {}
    P pointer;
  };

  Block* block_ = nullptr;
};

template <detail::OwnsTogether P>
Shared(P) -> Shared<std::remove_cvref_t<decltype(*std::declval<const P&>().get())>>;
template <class T>
  requires(!detail::OwnsTogether<T>)
Shared(T)
->Shared<T>;

}}  // namespace fanout::v0
