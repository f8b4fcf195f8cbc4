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
  ShardResults(std::size_t size, bool owned) : values_(detail::InlineArray<const void*>::unset(size)), owned_(owned) {}

  /// The values that `get(i)` returns references to. May throw std::bad_alloc if there are more than eight.
  template <class Get>
  ShardResults(std::size_t size, bool owned, const Get& get) : ShardResults(size, owned) {
    for (std::size_t i = 0; i < size; ++i) values_[i] = &get(i);
  }

  /// The values inside those of `outer`, which `get(value)` returns references to.
  template <class Outer, class Get>
  ShardResults(const ShardResults<Outer>& outer, bool owned, const Get& get) : ShardResults(outer.size(), owned) {
    for (std::size_t i = 0; i < outer.size(); ++i) values_[i] = &static_cast<const X&>(get(outer[i]));
  }

  std::size_t size() const noexcept { return values_.size(); }
  bool owned() const noexcept { return owned_; }
  const X& operator[](std::size_t i) const noexcept { return *static_cast<const X*>(values_[i]); }
  void set(std::size_t i, const X& value) noexcept { values_[i] = &value; }

  /// Returns the only value: moved out if owned(), otherwise a copy.
  X take_only() { return owned_ ? X(std::move(take(0))) : X((*this)[0]); }

  /// Returns value i, to be moved from. Must only be called if owned().
  X& take(std::size_t i) noexcept { return const_cast<X&>((*this)[i]); }

 private:
  // Of `const X`. Without their type, results of all types share the code of the array.
  detail::InlineArray<const void*> values_;
  bool owned_;
};

}}  // namespace fanout::v0
