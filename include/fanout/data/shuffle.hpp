// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include <fanout/base/checks.hpp>
#include <fanout/base/error.hpp>
#include <fanout/context/random_stream.hpp>

namespace fanout { inline namespace v0 {

/// A random order of samples in each epoch, as a pure function: `Shuffle{.seed = 1}.order(epoch, samples)[i]` is the
/// i-th sample of that epoch. No order is stored, so any place in any epoch is found in constant time, on any rank and
/// any thread. Orders are the same on all platforms, and will be the same in later versions.
struct Shuffle {
  std::uint64_t seed = 0;

  /// The order of one epoch: a bijection of the numbers below size(). 48 bytes, without memory of its own. Thread-safe.
  ///
  /// A Feistel network (M. Luby and C. Rackoff, "How to construct pseudorandom permutations from pseudorandom
  /// functions", SIAM J. Comput. 17, 1988) permutes the numbers of as many bits as size() - 1 has. A number that is too
  /// large is permuted again until it is below size(). That is the cycle walking of J. Black and P. Rogaway, "Ciphers
  /// with arbitrary finite domains" (CT-RSA 2002). It takes fewer than two turns on average, and more for fewer than
  /// 128 samples. The keys of the rounds are words of Philox for the seed and the epoch. A round mixes its key and one
  /// half of the number by the finaliser of SplitMix64 (G. L. Steele et al., "Fast splittable pseudorandom number
  /// generators", OOPSLA 2014).
  class Order {
   public:
    constexpr Order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size) noexcept
        : size_(size), left_bits_(bits_below(size) / 2), right_bits_(bits_below(size) - left_bits_) {
      for (std::uint32_t block = 0; block < rounds / 4; ++block) {
        // No batch has so many rows that ctx.random() has this last word, which is the upper half of the row there.
        std::uint32_t words[4] = {block, static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32U),
                                  0xFFFFFFFFU};
        detail::philox(words, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U));
        for (std::uint32_t i = 0; i < 4; ++i) keys_[4 * block + i] = words[i];
      }
    }

    /// The number of samples.
    constexpr std::uint64_t size() const noexcept { return size_; }

    /// The sample at this place of the order. If FANOUT_CHECKS is 1, throws InvalidArgument unless `place` < size().
    constexpr std::uint64_t operator[](std::uint64_t place) const {
      check(place, "a place outside of its order");
      std::uint64_t sample = permuted(place);
      while (sample >= size_) sample = permuted(sample);
      return sample;
    }

    /// The place of this sample: `order[order.place_of(sample)] == sample`. Checks as operator[] does.
    constexpr std::uint64_t place_of(std::uint64_t sample) const {
      check(sample, "a sample that is not in the order");
      std::uint64_t place = permuted_back(sample);
      while (place >= size_) place = permuted_back(place);
      return place;
    }

   private:
    static constexpr std::uint32_t rounds = 8;
    // In a network of fewer bits, the 720 orders of six samples are not equally likely, however many rounds it has.
    static constexpr std::uint32_t fewest_bits = 8;

    static constexpr std::uint32_t bits_below(std::uint64_t size) noexcept {
      const std::uint32_t bits = size == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(size - 1));
      return bits < fewest_bits ? fewest_bits : bits;
    }

    constexpr void check([[maybe_unused]] std::uint64_t number, [[maybe_unused]] const char* what) const {
      if (FANOUT_CHECKS && number >= size_) {
        throw InvalidArgument(explain({.what = what,
                                       .where = "Shuffle::Order",
                                       .expected = "a number below " + std::to_string(size_),
                                       .found = std::to_string(number)}));
      }
    }

    /// The last `bits` bits of a random word for this round and this half of a number.
    constexpr std::uint64_t mixed(std::uint32_t round, std::uint64_t half, std::uint32_t bits) const noexcept {
      std::uint64_t word = std::uint64_t{keys_[round]} << 32U | half;
      word = (word ^ word >> 30U) * 0xBF58476D1CE4E5B9U;
      word = (word ^ word >> 27U) * 0x94D049BB133111EBU;
      return (word ^ word >> 31U) & ((std::uint64_t{1} << bits) - 1);
    }

    constexpr std::uint64_t permuted(std::uint64_t number) const noexcept {
      std::uint64_t left = number >> right_bits_;
      std::uint64_t right = number & ((std::uint64_t{1} << right_bits_) - 1);
      for (std::uint32_t round = 0; round < rounds; round += 2) {
        left ^= mixed(round, right, left_bits_);
        right ^= mixed(round + 1, left, right_bits_);
      }
      return left << right_bits_ | right;
    }

    constexpr std::uint64_t permuted_back(std::uint64_t number) const noexcept {
      std::uint64_t left = number >> right_bits_;
      std::uint64_t right = number & ((std::uint64_t{1} << right_bits_) - 1);
      for (std::uint32_t round = rounds; round > 0; round -= 2) {
        right ^= mixed(round - 1, left, right_bits_);
        left ^= mixed(round - 2, right, left_bits_);
      }
      return left << right_bits_ | right;
    }

    std::uint64_t size_;
    std::uint32_t left_bits_;
    std::uint32_t right_bits_;
    std::uint32_t keys_[rounds]{};
  };

  /// The order of `samples` samples in this epoch.
  constexpr Order order(std::uint64_t epoch, std::uint64_t samples) const noexcept { return {seed, epoch, samples}; }

  friend constexpr bool operator==(const Shuffle&, const Shuffle&) = default;
};

}}  // namespace fanout::v0
