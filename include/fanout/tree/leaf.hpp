// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <fanout/base/device_id.hpp>

namespace fanout { inline namespace v0 {

/// Makes a type an array leaf: arguments of that type are split by rows, and results are concatenated by rows. A
/// specialisation has
///
/// 1. `using piece_type`: what one shard receives, a value that borrows (`View<const float, 2>`);
/// 2. `static std::size_t rows(const X&)`: the extent of axis 0;
/// 3. `static piece_type piece(const X&, std::size_t begin, std::size_t end)`: rows [begin, end), without a copy if the
///    calling thread can access the memory;
/// 4. if a `forward` may return it: `static X concatenate(const auto& pieces, const LeafPath& path)`, which
///    concatenates the `pieces.size()` >= 1 values `pieces[i]`. It may return another type than X. It throws
///    ShapeMismatch, which names the path, if pieces do not fit together. Not needed for tensors, views and vectors. It
///    may also have the form `concatenate(auto& pieces, const GatherTarget& place, const LeafPath& path)`. Then it can
///    say which shard does not fit, `place.describe(i)`, and move a value that stands alone, `pieces.take_only()`. It
///    concatenates on `place.axis`;
/// 5. if it can be split on other axes: `static std::size_t rows_on(int axis, const X&, const LeafPath&)` and
///    `static piece_type piece_on(int axis, const X&, std::size_t begin, std::size_t end, const LeafPath&)`, which
///    calls then use instead. A negative axis counts from the last one; see backend::checked_axis();
/// 6. if `x.data()` and `x.size()` do not tell which memory it shows:
///    `static std::span<const std::byte> bytes(const X&)`, from the first element to the last. Calls that write in
///    place refuse arguments that overlap.
template <class X>
struct leaf_traits;

/// A type with leaf_traits.
template <class X>
concept ArrayLeaf = requires(const X& x) {
  typename leaf_traits<X>::piece_type;
  { leaf_traits<X>::rows(x) } -> std::same_as<std::size_t>;
  { leaf_traits<X>::piece(x, std::size_t{}, std::size_t{}) } -> std::same_as<typename leaf_traits<X>::piece_type>;
};

namespace detail {

/// True for `std::vector`, which is an array of its elements unless they hold trees (HoldsTree).
template <class X>
inline constexpr bool owns_elements = false;

/// True for `std::span`, which is such an array, too, but does not own its elements.
template <class X>
inline constexpr bool shows_elements = false;

}  // namespace detail

/// True for a type that counts as one number although it is not arithmetic: half, bfloat16. Specialise it to add one.
template <class X>
inline constexpr bool enable_scalar = false;

/// A DeviceId counts as one: `"device"_k = ctx.device().id()` tells which device ran each shard.
template <>
inline constexpr bool enable_scalar<DeviceId> = true;

/// One number: arithmetic types, enums, complex numbers, and what enable_scalar adds.
template <class X>
concept Scalar = std::is_arithmetic_v<X> || std::is_enum_v<X> || enable_scalar<X> ||
    (std::is_trivially_copyable_v<X>&& requires(const X& x) {
      { x.real() } -> std::same_as<typename X::value_type>;
      { x.imag() } -> std::same_as<typename X::value_type>;
    });

}}  // namespace fanout::v0
