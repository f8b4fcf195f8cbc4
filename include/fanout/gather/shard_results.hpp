// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/inline_array.hpp>

namespace fanout { inline namespace v0 {

/// The values that the shards returned at one place of the tree, in row order. Borrows them.
template <class X>
class ShardResults {
 public:
  /// For `size` values, which set() names. `owned`: true if nothing else needs the values, so they may be moved from.
  /// May throw std::bad_alloc if there are more than eight.
  ShardResults(std::size_t size, bool owned) : values_(size), size_(size), owned_(owned) {}

  /// The values that `get(i)` returns references to. May throw std::bad_alloc if there are more than eight.
  template <class Get>
  ShardResults(std::size_t size, bool owned, const Get& get)
      : values_(size == 0 ? 1 : size,  // at least one, or compilers warn that there is no first
                [&get, size](std::size_t i) noexcept -> const X* { return size == 0 ? nullptr : &get(i); }),
        size_(size),
        owned_(owned) {}

  /// The values inside those of `outer`, which `get(value)` returns references to.
  template <class Outer, class Get>
  ShardResults(const ShardResults<Outer>& outer, bool owned, const Get& get)
      : ShardResults(outer.size(), owned, [&](std::size_t i) -> const X& { return get(outer[i]); }) {}

  std::size_t size() const noexcept { return size_; }
  bool owned() const noexcept { return owned_; }
  const X& operator[](std::size_t i) const noexcept { return *values_[i]; }
  void set(std::size_t i, const X& value) noexcept { values_[i] = &value; }

  /// Returns the only value: moved out if owned(), otherwise a copy.
  X take_only() { return owned_ ? X(std::move(take(0))) : X(*values_[0]); }

  /// Returns value i, to be moved from. Must only be called if owned().
  X& take(std::size_t i) noexcept { return const_cast<X&>(*values_[i]); }

 private:
  detail::InlineArray<const X*> values_;
  std::size_t size_;
  bool owned_;
};

}}  // namespace fanout::v0
