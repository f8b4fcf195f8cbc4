// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/inline_array.hpp>

namespace fanout { inline namespace v0 {

/// What the shards returned at one place of the tree, in row order.
template <class X>
class ShardResults {
 public:
  /// `owned`: nobody else needs the values any more, so they may be moved from.
  ShardResults(std::size_t size, bool owned) : values_(size), size_(size), owned_(owned) {}

  /// Those that `get(i)` refers to. Throws std::bad_alloc for more than eight.
  template <class Get>
  ShardResults(std::size_t size, bool owned, const Get& get)
      : values_(size == 0 ? 1 : size,  // so that there is a first one, of which compilers would warn else
                [&get, size](std::size_t i) noexcept -> const X* { return size == 0 ? nullptr : &get(i); }),
        size_(size),
        owned_(owned) {}

  /// Where each value of `outer` holds a value of type X: those values, found by `get(value)`.
  template <class Outer, class Get>
  ShardResults(const ShardResults<Outer>& outer, bool owned, const Get& get)
      : ShardResults(outer.size(), owned, [&](std::size_t i) -> const X& { return get(outer[i]); }) {}

  std::size_t size() const noexcept { return size_; }
  bool owned() const noexcept { return owned_; }
  const X& operator[](std::size_t i) const noexcept { return *values_[i]; }
  void set(std::size_t i, const X& value) noexcept { values_[i] = &value; }

  /// The only value, moved out if that is allowed.
  X take_only() { return owned_ ? X(std::move(take(0))) : X(*values_[0]); }

  /// Value i to be moved from. Only if owned().
  X& take(std::size_t i) noexcept { return const_cast<X&>(*values_[i]); }

 private:
  detail::InlineArray<const X*> values_;
  std::size_t size_;
  bool owned_;
};

}}  // namespace fanout::v0
