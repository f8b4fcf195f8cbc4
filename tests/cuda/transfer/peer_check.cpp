// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/transfer/peer_check.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>

using fanout::cuda::detail::checked_byte;

namespace {

constexpr std::size_t compared = 4096;

/// How many of so many bytes are the same in the copy of a size between two GPUs and in another one.
template <class Other>
int same_bytes(const Other& other) {
  int same = 0;
  for (std::size_t i = 0; i < compared; ++i) same += checked_byte(i, compared, 0, 1) == other(i) ? 1 : 0;
  return same;
}

}  // namespace

// GPUs copy more than 2 MiB by other means.
static_assert(std::size(fanout::cuda::detail::checked_sizes) == 4 &&
              fanout::cuda::detail::checked_sizes[3] > 2'097'152);

TEST_CASE("the pattern that checks a pair differs from its own shifts and from other sizes and pairs") {
  constexpr int most = compared / 20;  // one in 256 is so by chance
  for (std::size_t shift = 1; shift <= 1024; ++shift) {
    CAPTURE(shift);
    CHECK(same_bytes([=](std::size_t i) { return checked_byte(i + shift, compared, 0, 1); }) < most);
    CHECK(same_bytes([=](std::size_t i) { return checked_byte(i, compared + shift, 0, 1); }) < most);
  }
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      if (from == 0 && to == 1) continue;
      CAPTURE(from);
      CAPTURE(to);
      CHECK(same_bytes([=](std::size_t i) { return checked_byte(i, compared, from, to); }) < most);
    }
  }
}
