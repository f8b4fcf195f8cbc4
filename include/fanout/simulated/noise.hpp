// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

/// Mixes the bits: the output function of splitmix64, by G. L. Steele et al., "Fast splittable pseudorandom number
/// generators" (OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t bits) noexcept {
  bits += 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31U);
}

/// A random number with mean 0 and variance 1, almost normal, from -6 to 6. The same on every machine: it is a sum of
/// twelve integers of 16 bits, and calls no function of the C library.
constexpr double noise_of(std::uint64_t seed, std::uint64_t device, std::uint64_t shard) noexcept {
  const std::uint64_t stream = mixed(mixed(mixed(seed) ^ device) ^ shard);
  std::int64_t sum = std::int64_t{-6} * 65535;
  for (std::uint64_t word = 0; word < 3; ++word) {
    for (std::uint64_t bits = mixed(stream + word), part = 0; part < 4; ++part, bits >>= 16U) {
      sum += static_cast<std::int64_t>(bits & 0xffffU);
    }
  }
  return static_cast<double>(sum) / 65536;
}

}}}  // namespace fanout::v0::detail
