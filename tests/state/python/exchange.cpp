// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Python reads and writes: see exchange.py.
//
//     exchange write FILE          saves arrays of each type of element
//     exchange read FILE           loads them, and fails unless they are the same
//     exchange judge FOLDER COUNT  says of the files 0, 1, ... there if they are valid: a line of `1` or `0` each

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <fanout/state.hpp>

namespace {

using fanout::dict;
using fanout::Tensor;
using namespace fanout::literals;

/// A short floating type as IEEE 754 has them, for numbers that it can hold exactly.
template <class Bits, int ExponentBits, int FractionBits>
struct Short {
  Short() = default;
  explicit Short(float x) {
    if (x == 0) return;
    int exponent = 0;
    const float fraction = std::frexp(x, &exponent) * 2 - 1;  // x is (1 + fraction) * 2^(exponent - 1)
    bits = static_cast<Bits>(((exponent - 1 + bias) << FractionBits) |
                             static_cast<int>(fraction * static_cast<float>(1 << FractionBits)));
  }
  explicit operator float() const {
    if (bits == 0) return 0;
    const auto fraction = static_cast<float>(bits & ((1 << FractionBits) - 1)) / static_cast<float>(1 << FractionBits);
    return std::ldexp(1 + fraction, (bits >> FractionBits) - bias);
  }
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  Bits bits{};
};
using F16 = Short<std::uint16_t, 5, 10>;
using BF16 = Short<std::uint16_t, 8, 7>;
using F8_E4M3 = Short<std::uint8_t, 4, 3>;
using F8_E5M2 = Short<std::uint8_t, 5, 2>;

template <class T>
T number(std::size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return i % 2 == 1;
  } else {
    return static_cast<T>(static_cast<float>(i));
  }
}

/// Arrays of one type. Python makes the same.
template <class T>
struct Arrays {
  Tensor<T, 2> numbers;  // 0 to 5
  Tensor<T, 1> bits;     // whose bytes are a pattern
  T scalar;              // 3, or true
  Tensor<T, 2> empty;    // [0, 2]

  static Arrays blank() { return {Tensor<T, 2>(2, 3), Tensor<T, 1>(4), T{}, Tensor<T, 2>(0, 2)}; }
  static Arrays filled() {
    Arrays arrays = blank();
    for (std::size_t i = 0; i < 6; ++i) arrays.numbers.data()[i] = number<T>(i);
    std::vector<unsigned char> pattern;
    for (std::size_t i = 0; i < 4 * sizeof(T); ++i) {
      pattern.push_back(static_cast<unsigned char>(std::is_same_v<T, bool> ? i % 2 : (i * 37 + 11) % 256));
    }
    std::memcpy(static_cast<void*>(arrays.bits.data()), pattern.data(), pattern.size());
    arrays.scalar = number<T>(3);
    return arrays;
  }
};

template <class T>
bool same_bytes(const T* a, const T* b, std::size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(T)) == 0;
}
template <class T>
bool same(const Arrays<T>& a, const Arrays<T>& b) {
  return same_bytes(a.numbers.data(), b.numbers.data(), 6) && same_bytes(a.bits.data(), b.bits.data(), 4) &&
         same_bytes(&a.scalar, &b.scalar, 1) && a.empty.extents() == b.empty.extents();
}

struct All {
  Arrays<bool> BOOL;
  Arrays<std::uint8_t> U8;
  Arrays<std::int8_t> I8;
  Arrays<std::uint16_t> U16;
  Arrays<std::int16_t> I16;
  Arrays<F16> F16_;
  Arrays<BF16> BF16_;
  Arrays<F8_E4M3> F8_E4M3_;
  Arrays<F8_E5M2> F8_E5M2_;
  Arrays<std::uint32_t> U32;
  Arrays<std::int32_t> I32;
  Arrays<float> F32;
  Arrays<double> F64;
  Arrays<std::uint64_t> U64;
  Arrays<std::int64_t> I64;
  Arrays<std::complex<float>> C64;
  std::string text;
};

template <class F>
void visit(const All& a, const All& b, const F& f) {
  f("BOOL", a.BOOL, b.BOOL), f("U8", a.U8, b.U8), f("I8", a.I8, b.I8), f("U16", a.U16, b.U16), f("I16", a.I16, b.I16);
  f("F16_", a.F16_, b.F16_), f("BF16_", a.BF16_, b.BF16_), f("F8_E4M3_", a.F8_E4M3_, b.F8_E4M3_);
  f("F8_E5M2_", a.F8_E5M2_, b.F8_E5M2_), f("U32", a.U32, b.U32), f("I32", a.I32, b.I32), f("F32", a.F32, b.F32);
  f("F64", a.F64, b.F64), f("U64", a.U64, b.U64), f("I64", a.I64, b.I64), f("C64", a.C64, b.C64);
}

template <class T>
void fill(Arrays<T>& arrays, bool filled) {
  arrays = filled ? Arrays<T>::filled() : Arrays<T>::blank();
}
All all(bool filled) {
  All a;
  fill(a.BOOL, filled), fill(a.U8, filled), fill(a.I8, filled), fill(a.U16, filled), fill(a.I16, filled);
  fill(a.F16_, filled), fill(a.BF16_, filled), fill(a.F8_E4M3_, filled), fill(a.F8_E5M2_, filled);
  fill(a.U32, filled), fill(a.I32, filled), fill(a.F32, filled), fill(a.F64, filled), fill(a.U64, filled);
  fill(a.I64, filled), fill(a.C64, filled);
  if (filled) a.text = std::string("gr\xC3\xBC\xC3\x9F\0\xFF", 8);
  return a;
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string what = count > 2 ? arguments[1] : "", path = count > 2 ? arguments[2] : "";
  if (what == "write") {
    fanout::save(path, all(true));
    return 0;
  }
  if (what == "read") {
    All read = all(false);
    fanout::load(path, read);
    const All expected = all(true);
    bool is_same = read.text == expected.text;
    visit(read, expected, [&](const char* name, const auto& a, const auto& b) {
      if (same(a, b)) return;
      std::fprintf(stderr, "%s was not read as it was written\n", name);
      is_same = false;
    });
    return is_same ? 0 : 1;
  }
  if (what == "judge" && count > 3) {
    for (int i = 0; i < std::stoi(arguments[3]); ++i) {
      const fanout::detail::MappedFile file(path + "/" + std::to_string(i));
      try {
        fanout::detail::parse_header(file.bytes(), "file");
        std::puts("1");
      } catch (const fanout::FormatError&) {
        std::puts("0");
      }
    }
    return 0;
  }
  std::fprintf(stderr, "exchange write|read FILE, or exchange judge FOLDER COUNT\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
