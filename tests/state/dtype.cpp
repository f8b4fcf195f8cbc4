// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/dtype.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <fanout/base/device_id.hpp>

#include "support/message_of.hpp"

namespace {

/// A floating type of so many bytes, whose 1 has these bits.
template <class Bits, Bits One>
struct ShortNumber {
  ShortNumber() = default;
  explicit ShortNumber(float x) : bits(x == 1 ? One : Bits{0}) {}
  explicit operator float() const { return bits == One ? 1 : 0; }
  Bits bits{};
};

struct NoNumber {
  int x;
};

enum class Flag : bool {};
enum class Shade : std::int16_t {};

template <class T>
std::string_view saved_as() {
  return fanout::detail::name_of(fanout::detail::dtype_of<T>());
}

}  // namespace

TEST_CASE("each type of C++ that the format has is saved under its name") {
  CHECK(saved_as<bool>() == "BOOL");
  CHECK(saved_as<std::uint8_t>() == "U8");
  CHECK(saved_as<std::int8_t>() == "I8");
  CHECK(saved_as<std::byte>() == "U8");
  CHECK(saved_as<std::uint16_t>() == "U16");
  CHECK(saved_as<std::int16_t>() == "I16");
  CHECK(saved_as<std::uint32_t>() == "U32");
  CHECK(saved_as<std::int32_t>() == "I32");
  CHECK(saved_as<std::uint64_t>() == "U64");
  CHECK(saved_as<std::int64_t>() == "I64");
  CHECK(saved_as<unsigned long long>() == "U64");
  CHECK(saved_as<signed char>() == "I8");
  CHECK(saved_as<float>() == "F32");
  CHECK(saved_as<double>() == "F64");
  CHECK(saved_as<std::complex<float>>() == "C64");
  CHECK(saved_as<Flag>() == "BOOL");
  CHECK(saved_as<Shade>() == "I16");
}

TEST_CASE("letters are saved without a sign on every machine") {
  CHECK(saved_as<char>() == "U8");
  CHECK(saved_as<char8_t>() == "U8");
  CHECK(saved_as<char16_t>() == "U16");
  CHECK(saved_as<char32_t>() == "U32");
  CHECK(saved_as<wchar_t>() == (sizeof(wchar_t) == 2 ? "U16" : "U32"));
}

TEST_CASE("a complex number of doubles is saved as two doubles") {
  CHECK(saved_as<std::complex<double>>() == "F64");
  CHECK(fanout::detail::saved_as_pair<std::complex<double>>);
  CHECK_FALSE(fanout::detail::saved_as_pair<std::complex<float>>);
  CHECK_FALSE(fanout::detail::saved_as_pair<double>);
}

TEST_CASE("a short floating type is recognised by the bits of its 1") {
  CHECK(saved_as<ShortNumber<std::uint16_t, 0x3C00>>() == "F16");
  CHECK(saved_as<ShortNumber<std::uint16_t, 0x3F80>>() == "BF16");
  CHECK(saved_as<ShortNumber<std::uint8_t, 0x38>>() == "F8_E4M3");
  CHECK(saved_as<ShortNumber<std::uint8_t, 0x3C>>() == "F8_E5M2");
  CHECK(saved_as<ShortNumber<std::uint8_t, 0x7F>>() == "F8_E8M0");
  const std::string message =
      fanout_test::message_of<fanout::InvalidArgument>([] { saved_as<ShortNumber<std::uint16_t, 0x1234>>(); });
  CHECK(fanout_test::says(message, "floating type", "ShortNumber", "expected F16, BF16"));
}

TEST_CASE("types that the format does not have are known beforehand") {
  using fanout::detail::HasDtype;
  static_assert(HasDtype<bool> && HasDtype<Shade> && HasDtype<std::complex<double>>);
  static_assert(!HasDtype<long double> && !HasDtype<NoNumber> && !HasDtype<std::string> && !HasDtype<int*>);
  static_assert(!HasDtype<std::complex<long double>> && !HasDtype<fanout::DeviceId>);
  static_assert(!HasDtype<std::atomic<bool>> && !HasDtype<std::atomic<short>> && !HasDtype<std::atomic<int>>);
}

TEST_CASE("the names of types are unique, and are found") {
  using namespace fanout::detail;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < dtype_rows.size(); ++i) {
    CHECK(find_dtype(dtype_rows[i].name) == static_cast<Dtype>(i));
    CHECK(names.insert(dtype_rows[i].name).second);
  }
  CHECK(find_dtype("F4") == Dtype::f4);
  CHECK(find_dtype("U64") == Dtype::u64);
  CHECK(find_dtype("BF16") == Dtype::bf16);
  CHECK_FALSE(find_dtype("f32").has_value());
  CHECK_FALSE(find_dtype("").has_value());
  CHECK(size_of(Dtype::boolean) == 1);
  CHECK(size_of(Dtype::bf16) == 2);
  CHECK(size_of(Dtype::f32) == 4);
  CHECK(size_of(Dtype::c64) == 8);
  CHECK(size_of(Dtype::f4) == 0);
}
