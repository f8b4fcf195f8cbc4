// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A number that can be a weight. Not char, so that a text is not taken for a list of weights.
template <class W>
concept Weight = std::is_arithmetic_v<W> && !std::same_as<W, char>;

// std::begin comes with <string>. <iterator> would include the streams.
template <class R>
concept RangeOfWeights = requires(const R& range) {
  std::end(range);
  requires Weight<std::remove_cvref_t<decltype(*std::begin(range))>>;
};

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_weight(std::size_t position, double weight);

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_weights_without_sum(std::size_t size);

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_number_of_weights(const char* split, std::size_t weights,
                                                                    std::size_t devices);

/// A finite double that is not negative, as mantissa * 2^exponent (less a constant). It is read from its bits, since
/// with -ffast-math compilers assume that no number is infinite or NaN.
class DoubleBits {
 public:
  explicit constexpr DoubleBits(double number) noexcept : bits_(std::bit_cast<std::uint64_t>(number)) {}

  constexpr bool is_zero() const noexcept { return bits_ << 1 == 0; }
  constexpr bool is_finite_positive() const noexcept { return bits_ - 1 < infinity - 1; }  // wraps for zero
  constexpr int exponent() const noexcept { return is_subnormal() ? 1 : static_cast<int>(bits_ >> mantissa_bits); }
  constexpr std::uint64_t mantissa() const noexcept {
    constexpr std::uint64_t hidden = std::uint64_t{1} << mantissa_bits;
    return (bits_ & (hidden - 1)) | (is_subnormal() ? 0 : hidden);
  }
  /// The exponent of the power of two above the number.
  constexpr int top() const noexcept { return exponent() + static_cast<int>(std::bit_width(mantissa())); }

 private:
  static constexpr int mantissa_bits = 52;
  static constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << mantissa_bits;
  constexpr bool is_subnormal() const noexcept { return bits_ >> mantissa_bits == 0; }

  std::uint64_t bits_;
};

}  // namespace detail

/// Divides rows in proportion to weights, one for each device: `WeightedSplit{50, 30, 20}`, numbers of any arithmetic
/// types, or `WeightedSplit{weights}` for a vector, an array or another range of them.
///
/// The rule is that of the largest remainders (Hamilton's method; Balinski and Young, Fair Representation, 1982). A
/// device's quota is rows * weight / sum of the weights. The device gets the whole part of its quota. The rows that are
/// left go one each to the devices with the largest fractional parts, the first ones if these are equal. So each device
/// is within one row of its quota. No device gets fewer rows than a lighter one, and equal weights make EvenSplit's
/// plan. A device without rows stays idle. With no rows, each device gets an empty shard, except those of weight zero,
/// which never get a shard.
///
/// The plan is computed in whole numbers, so only the weights are rounded, for any number of rows. They are converted
/// to double, and cut off 50 binary digits below the first digit of the largest one (for up to 2048 devices), but never
/// to zero. Weights that are whole numbers below 2^50 are exact.
class WeightedSplit {
 public:
  /// Throws InvalidArgument, which names the position, if a weight is negative, infinite or NaN. Throws InvalidArgument
  /// if all are zero. A constant with such weights does not compile.
  template <detail::Weight... W>
    requires(sizeof...(W) >= 1)
  explicit(sizeof...(W) == 1) constexpr WeightedSplit(W... weights) {
    detail::SmallVector<double> doubles;
    (doubles.push_back(static_cast<double>(weights)), ...);
    set(doubles);
  }

  /// Throws as the other constructor, also for an empty range.
  template <detail::RangeOfWeights R>
  explicit constexpr WeightedSplit(const R& weights) {
    detail::SmallVector<double> doubles;
    for (const auto weight : weights) doubles.push_back(static_cast<double>(weight));
    set(doubles);
  }

  /// The plan for `rows` rows. Throws InvalidArgument unless there are as many devices as weights.
  constexpr Plan operator()(std::size_t rows, std::size_t devices) const {
    if (devices != shares_.size()) detail::refuse_number_of_weights("WeightedSplit", shares_.size(), devices);
    detail::SmallVector<std::size_t> wholes;  // two lists of numbers, so that no new vector type is compiled
    detail::SmallVector<std::uint64_t> remainders;
    std::size_t left = rows;
    for (const std::uint64_t share : shares_) {
      const Quota quota = quota_of(rows, share);
      wholes.push_back(quota.whole);
      remainders.push_back(quota.remainder);
      left -= quota.whole;
    }
    // The least remainder that still gets a row is the largest number that `left` remainders reach. The search bit by
    // bit takes no memory, and little time for thousands of devices.
    std::uint64_t least = 0;
    for (std::uint64_t bit = std::bit_floor(total_); bit != 0; bit /= 2) {
      const std::size_t reached_by = count_from(remainders, least + bit);
      if (reached_by >= left) least += bit;
      if (reached_by == left) break;
    }
    std::size_t ties = left - count_from(remainders, least + 1);

    Plan plan;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < devices; ++i) {
      const bool tied = remainders[i] == least && ties > 0;
      if (tied) --ties;
      const std::size_t end = begin + wholes[i] + (tied || remainders[i] > least ? 1 : 0);
      if (end != begin || (rows == 0 && shares_[i] != 0)) plan.add({.rows = {begin, end}, .device = i});
      begin = end;
    }
    return plan;
  }

 private:
  /// rows * share / total_
  struct Quota {
    std::size_t whole = 0;
    std::uint64_t remainder = 0;
  };

  constexpr void set(const detail::SmallVector<double>& weights) {
    int top = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const detail::DoubleBits weight(weights[i]);
      if (weight.is_zero()) continue;
      if (!weight.is_finite_positive()) detail::refuse_weight(i, weights[i]);
      if (weight.top() > top) top = weight.top();
    }
    if (top == 0) detail::refuse_weights_without_sum(weights.size());

    // Keeps as many digits of the largest weight as leave the sum below 2^62. Then divides all by their common divisor,
    // since plans with small numbers are made faster.
    const int digits = 62 - static_cast<int>(std::bit_width(weights.size() - 1));
    detail::SmallVector<std::uint64_t> scaled;
    std::uint64_t divisor = 0;
    for (const double weight : weights) {
      scaled.push_back(scale(detail::DoubleBits(weight), digits - top));
      divisor = common_divisor(divisor, scaled[scaled.size() - 1]);
    }
    for (const std::uint64_t weight : scaled) {
      shares_.push_back(weight / divisor);
      total_ += shares_[shares_.size() - 1];
    }
  }

  /// The greatest common divisor. That of a number and zero is the number.
  static constexpr std::uint64_t common_divisor(std::uint64_t a, std::uint64_t b) {
    while (b != 0) {
      const std::uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  }

  /// weight * 2^exponent, rounded down, but not to zero.
  static constexpr std::uint64_t scale(detail::DoubleBits weight, int exponent) {
    if (weight.is_zero()) return 0;
    const int shift = weight.exponent() + exponent;
    if (shift >= 0) return weight.mantissa() << shift;
    const std::uint64_t scaled = shift > -64 ? weight.mantissa() >> -shift : 0;
    return scaled == 0 ? 1 : scaled;
  }

  /// By long multiplication, bit by bit, if the product may not fit into any type.
  constexpr Quota quota_of(std::size_t rows, std::uint64_t share) const {
    if (rows <= UINT64_MAX / total_) {
      return {rows * share / total_, rows * share % total_};
    }
    Quota quota;
    for (std::size_t bit = std::bit_floor(rows); bit != 0; bit /= 2) {
      quota.whole *= 2;
      quota.remainder = 2 * quota.remainder + ((rows & bit) != 0 ? share : 0);  // below 3 * 2^62
      for (; quota.remainder >= total_; quota.remainder -= total_) ++quota.whole;
    }
    return quota;
  }

  static constexpr std::size_t count_from(const detail::SmallVector<std::uint64_t>& remainders, std::uint64_t least) {
    std::size_t count = 0;
    for (const std::uint64_t remainder : remainders) count += remainder >= least ? 1 : 0;
    return count;
  }

  detail::SmallVector<std::uint64_t> shares_;  // whole numbers in the weights' proportions
  std::uint64_t total_ = 0;
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/plan/weighted_split.ipp>
#endif
