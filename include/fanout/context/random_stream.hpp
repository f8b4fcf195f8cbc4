// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/annotate.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

// nvcc has included <cmath>, with functions that run on a GPU. Elsewhere the compiler's builtins of the same functions
// save an include that costs as much as <map> and <tuple> together.
#if defined(__CUDACC__)
FANOUT_HOST_DEVICE inline double square_root(double x) noexcept { return std::sqrt(x); }
FANOUT_HOST_DEVICE inline double logarithm(double x) noexcept { return std::log(x); }
FANOUT_HOST_DEVICE inline double cosine(double x) noexcept { return std::cos(x); }
#else
inline double square_root(double x) noexcept { return __builtin_sqrt(x); }
inline double logarithm(double x) noexcept { return __builtin_log(x); }
inline double cosine(double x) noexcept { return __builtin_cos(x); }
#endif

/// Replaces the counter by four random words: Philox4x32-10 of J. K. Salmon et al., "Parallel random numbers: as easy
/// as 1, 2, 3" (SC11).
FANOUT_HOST_DEVICE constexpr void philox(std::uint32_t (&counter)[4], std::uint32_t key0, std::uint32_t key1) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter[0] = static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key0;
    counter[2] = static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key1;
    counter[1] = static_cast<std::uint32_t>(product1);
    counter[3] = static_cast<std::uint32_t>(product0);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

}  // namespace detail

/// The random numbers of one row of one call: the same on whatever device the row runs. A UniformRandomBitGenerator of
/// 32-bit words. Repeats after 2^34 words. Works in kernels.
class RandomStream {
 public:
  using result_type = std::uint32_t;

  /// Keyed by the model's seed, the number of the call and the row in the whole batch.
  FANOUT_HOST_DEVICE constexpr RandomStream(std::uint64_t seed, std::uint32_t call, std::uint64_t row) noexcept
      : seed_(seed), row_(row), call_(call) {}

  /// The stream of another row, from its beginning: `rows` rows after this one. For kernels, which have no context:
  /// with `first = ctx.random(0)`, the numbers of the shard's row i are those of `first.after(i)`. `i` counts from the
  /// shard's first row, as in launch(). Nothing checks that the shard has such a row.
  FANOUT_HOST_DEVICE constexpr RandomStream after(std::uint64_t rows) const noexcept {
    return {seed_, call_, row_ + rows};
  }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return static_cast<result_type>(-1); }

  /// The next random word.
  FANOUT_HOST_DEVICE constexpr result_type operator()() noexcept {
    if (used_ == 4) {
      words_[0] = block_++;
      words_[1] = call_;
      words_[2] = static_cast<std::uint32_t>(row_);
      words_[3] = static_cast<std::uint32_t>(row_ >> 32U);
      detail::philox(words_, static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32U));
      used_ = 0;
    }
    return words_[used_++];
  }

  /// Uniform in [0, 1), with 53 random bits. Uses two words.
  FANOUT_HOST_DEVICE constexpr double uniform() noexcept {
    const std::uint64_t high = (*this)() >> 5U;
    const std::uint64_t low = (*this)() >> 6U;
    return static_cast<double>((high << 26U) | low) * 0x1p-53;
  }

  /// Uniform among 0, 1, ... `n` - 1, without bias; 0 if `n` is 0. A draw uses one word, or two if `n` is above 2^32.
  /// It is repeated if it is not below `n`, with a probability of less than a half. If `n` is 1, no word is used.
  FANOUT_HOST_DEVICE constexpr std::uint64_t below(std::uint64_t n) noexcept {
    if (n < 2) return 0;
    std::uint64_t bits = n - 1;  // all that the largest number may have
    for (unsigned shift = 1; shift < 64; shift *= 2) bits |= bits >> shift;
    for (;;) {
      std::uint64_t word = (*this)();
      if (bits >> 32U != 0) word |= std::uint64_t{(*this)()} << 32U;
      if ((word & bits) < n) return word & bits;
    }
  }

  /// Normal with mean 0 and variance 1, by the method of Box and Muller (1958). Uses four words.
  FANOUT_HOST_DEVICE double normal() noexcept {
    const double radius = detail::square_root(-2.0 * detail::logarithm(1.0 - uniform()));
    return radius * detail::cosine(6.283185307179586476925 * uniform());
  }

 private:
  std::uint64_t seed_;
  std::uint64_t row_;
  std::uint32_t call_;
  std::uint32_t block_ = 0;
  std::uint32_t used_ = 4;
  std::uint32_t words_[4]{};
};

}}  // namespace fanout::v0
