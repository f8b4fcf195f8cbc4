// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/tree/number.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The types of elements that the safetensors format has.
enum class Dtype : unsigned char {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

/// A type's name in the format, and its size.
struct DtypeRow {
  std::string_view name;
  unsigned bits;
};

/// In the order of Dtype.
inline constexpr std::array<DtypeRow, 22> dtype_rows{
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};

constexpr const DtypeRow& row_of(Dtype dtype) noexcept { return dtype_rows[static_cast<std::size_t>(dtype)]; }

/// The bytes of an element. 0 for types of less than a byte.
constexpr std::size_t size_of(Dtype dtype) noexcept { return row_of(dtype).bits / 8; }

constexpr std::string_view name_of(Dtype dtype) noexcept { return row_of(dtype).name; }

constexpr std::optional<Dtype> find_dtype(std::string_view name) noexcept {
  for (std::size_t i = 0; i < dtype_rows.size(); ++i) {
    if (dtype_rows[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

/// A floating type of one or two bytes, such as half and bfloat16. C++20 has no trait for them. Atomic numbers convert
/// from and to float as well, but cannot be copied.
template <class T>
concept ShortFloat = std::is_trivially_copyable_v<T> && std::is_copy_constructible_v<T> && sizeof(T) <= 2 &&
                     (NarrowFloat<T> || std::is_floating_point_v<T>);

/// Recognises the type by the bits of its 1.
template <ShortFloat T>
Dtype short_float_dtype() {
  const auto one = static_cast<T>(1.0F);
  std::uint16_t bits = 0;
  std::memcpy(&bits, &one, sizeof one);  // the format is little-endian, and so is the machine
  if constexpr (sizeof(T) == 2) {
    if (bits == 0x3C00) return Dtype::f16;
    if (bits == 0x3F80) return Dtype::bf16;
  } else {
    if (bits == 0x38) return Dtype::f8_e4m3;
    if (bits == 0x3C) return Dtype::f8_e5m2;
    if (bits == 0x7F) return Dtype::f8_e8m0;
  }
  throw InvalidArgument(explain({.what = "a floating type that the safetensors format does not have",
                                 .where = type_name<T>(),
                                 .expected = "F16, BF16, F8_E4M3, F8_E5M2 or F8_E8M0"}));
}

template <class T>
inline constexpr bool is_complex_of = false;
template <template <class> class C, class V>
inline constexpr bool is_complex_of<C<V>> = requires(const C<V>& x) {
  { x.real() } -> std::same_as<V>;
  { x.imag() } -> std::same_as<V>;
}
&&sizeof(C<V>) == 2 * sizeof(V) && (std::is_same_v<V, float> || std::is_same_v<V, double>);

/// A type whose values the format can hold.
template <class T>
concept HasDtype = (std::is_integral_v<T> && sizeof(T) <= 8) || std::is_enum_v<T> || std::is_same_v<T, float> ||
                   std::is_same_v<T, double> || ShortFloat<T> || is_complex_of<T>;

/// The format has no complex numbers of doubles. They are saved as two doubles, on a last axis of their own.
template <class T>
inline constexpr bool saved_as_pair = false;
template <template <class> class C, class V>
  requires is_complex_of<C<V>>
inline constexpr bool saved_as_pair<C<V>> = std::is_same_v<V, double>;

/// The type of the format for elements of type T. Throws InvalidArgument for a short floating type that is unknown.
template <HasDtype T>
Dtype dtype_of() {
  if constexpr (std::is_enum_v<T>) {
    return dtype_of<std::underlying_type_t<T>>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return Dtype::boolean;
  } else if constexpr (std::is_integral_v<T>) {
    // Whether letters are signed depends on the machine, and a file must not.
    constexpr bool is_signed = std::is_signed_v<T> && !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t>;
    if constexpr (sizeof(T) == 1) return is_signed ? Dtype::i8 : Dtype::u8;
    if constexpr (sizeof(T) == 2) return is_signed ? Dtype::i16 : Dtype::u16;
    if constexpr (sizeof(T) == 4) return is_signed ? Dtype::i32 : Dtype::u32;
    if constexpr (sizeof(T) == 8) return is_signed ? Dtype::i64 : Dtype::u64;
  } else if constexpr (std::is_same_v<T, float>) {
    return Dtype::f32;
  } else if constexpr (std::is_same_v<T, double> || saved_as_pair<T>) {
    return Dtype::f64;
  } else if constexpr (is_complex_of<T>) {
    return Dtype::c64;
  } else {
    return short_float_dtype<T>();
  }
}

}}}  // namespace fanout::v0::detail
