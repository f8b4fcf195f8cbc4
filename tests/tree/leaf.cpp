// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <complex>
#include <cstddef>
#include <string>
#include <vector>

#include <fanout/tree/leaf.hpp>

namespace {

struct Series {};
struct WrongCount {};
struct WrongPiece {};
struct NoTraits {};
struct Half {
  unsigned short bits;
};
enum class Colour { red };
enum Direction { up };

/// Has the members of a complex number, but with types of its own.
struct Almost {
  using value_type = float;
  double real() const { return 0; }
  double imag() const { return 0; }
};

}  // namespace

template <>
struct fanout::leaf_traits<Series> {
  using piece_type = int;
  static std::size_t rows(const Series&) { return 0; }
  static piece_type piece(const Series&, std::size_t, std::size_t) { return 0; }
};
template <>
struct fanout::leaf_traits<WrongCount> : fanout::leaf_traits<Series> {
  static int rows(const WrongCount&) { return 0; }
  static piece_type piece(const WrongCount&, std::size_t, std::size_t) { return 0; }
};
template <>
struct fanout::leaf_traits<WrongPiece> {
  using piece_type = int;
  static std::size_t rows(const WrongPiece&) { return 0; }
  static long piece(const WrongPiece&, std::size_t, std::size_t) { return 0; }
};
template <>
inline constexpr bool fanout::enable_scalar<Half> = true;

namespace {

using fanout::ArrayLeaf;
using fanout::Scalar;

static_assert(ArrayLeaf<Series>);
static_assert(!ArrayLeaf<WrongCount>, "rows are counted in size_t");
static_assert(!ArrayLeaf<WrongPiece>, "a piece is what piece_type says");
static_assert(!ArrayLeaf<NoTraits>);
static_assert(!ArrayLeaf<int>);

static_assert(Scalar<int> && Scalar<bool> && Scalar<char> && Scalar<float> && Scalar<long double>);
static_assert(Scalar<Colour> && Scalar<Direction>);
static_assert(Scalar<std::complex<float>> && Scalar<std::complex<double>>);
static_assert(Scalar<Half>, "what enable_scalar adds");
static_assert(!Scalar<Series> && !Scalar<NoTraits>);
static_assert(!Scalar<Almost>, "the parts of a complex number have its value_type");
static_assert(!Scalar<std::string> && !Scalar<std::vector<int>> && !Scalar<int*> && !Scalar<std::nullptr_t>);

}  // namespace
