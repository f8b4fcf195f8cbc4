// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace fanout::inline v0 {

/// A vector that grows at its end and needs no allocation up to N elements: for what there is one of per device. Works
/// while compiling, and may be a constant as long as it holds no more than N. One that was moved from can be walked and
/// assigned; what it holds is not said.
template <class T, std::size_t N = 8>
class SmallVector {
 public:
  /// `value` may be one of its own elements.
  constexpr void push_back(const T& value) {
    if (few_size_ < few_.size()) {
      few_[few_size_++] = value;
    } else {
      if (many_.empty()) many_.assign(few_.begin(), few_.end());
      many_.push_back(value);
    }
  }

  constexpr std::size_t size() const noexcept { return many_.empty() ? few_size_ : many_.size(); }
  constexpr const T& operator[](std::size_t i) const noexcept { return begin()[i]; }
  constexpr const T* begin() const noexcept { return many_.empty() ? few_.data() : many_.data(); }
  constexpr const T* end() const noexcept { return begin() + size(); }

  friend constexpr bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

 private:
  std::array<T, N> few_{};
  std::size_t few_size_ = 0;
  std::vector<T> many_;  // all elements, when they are more than the few; its move leaves the few in the source
};

}  // namespace fanout::inline v0
