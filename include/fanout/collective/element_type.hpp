// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <fanout/collective/rank_elements.hpp>

namespace fanout { inline namespace v0 {

namespace backend {

/// The reduction rule: combines the numbers of all ranks element by element, in the order of the ranks, so the result
/// is bitwise the same in every run. A mean weighs every rank equally, however many rows it has. Sums and products of
/// integers wrap. In host memory, floating-point results are rounded as psum() documents.
enum class Reduction : unsigned char { sum, prod, min, max, mean };

/// The element type of a collective's arrays: any trivially copyable type; for reductions, numbers.
struct ElementType {
  enum class Kind : unsigned char { other, signed_integer, unsigned_integer, floating };

  std::string (*name)();
  std::size_t size;
  Kind kind;
  /// True if such elements have this reduction.
  bool (*reduces)(Reduction by) noexcept;
  /// Writes to `to` the reduction of `count` elements of each rank, in the order of the ranks.
  void (*reduce)(Reduction by, void* to, const RankElements& from, std::size_t count);
};

}  // namespace backend

namespace detail {

template <class T>
inline constexpr backend::ElementType::Kind element_kind =
    std::is_floating_point_v<T> ? backend::ElementType::Kind::floating
    : !std::is_integral_v<T>    ? backend::ElementType::Kind::other
    : std::is_signed_v<T>       ? backend::ElementType::Kind::signed_integer
                                : backend::ElementType::Kind::unsigned_integer;

}  // namespace detail

}}  // namespace fanout::v0
