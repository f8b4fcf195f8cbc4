// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

#include <fanout/memory/copy_rows.hpp>

using fanout::detail::copy_part;
using fanout::detail::copy_rows;
using fanout::detail::RowPart;
using fanout::detail::RowsCopy;

namespace {

/// Some copy, with what it should result in.
class AnyCopy {
 public:
  template <class Random>
  AnyCopy(Random& random, std::size_t most_bytes) {
    const std::size_t count = 1 + random() % 4;
    std::vector<std::size_t> lengths(count);
    std::size_t row_bytes = 0;
    for (std::size_t& length : lengths) {
      constexpr std::size_t usual[] = {0, 1, 2, 4, 8, 12, 16, 20, 64};
      length = random() % 2 == 0 ? usual[random() % 9] : random() % (random() % 8 == 0 ? 20000 : 300);
      row_bytes += length;
    }
    const std::size_t rows = row_bytes == 0 ? 5 : random() % (most_bytes / row_bytes + 2);
    for (const std::size_t length : lengths) {
      const std::size_t pitch = length + random() % 3 * (random() % 40);
      sources_.emplace_back(rows * pitch + length);
      for (std::byte& byte : sources_.back()) byte = static_cast<std::byte>(random());
      parts_.push_back({sources_.back().data(), pitch, length});
    }
    shift_ = random() % 70;
    to_.assign(shift_ + rows * row_bytes + 70, std::byte{0x5a});
    expected_ = to_;
    std::size_t at = shift_;
    for (std::size_t row = 0; row < rows; ++row) {
      for (const RowPart& part : parts_) {
        for (std::size_t i = 0; i < part.bytes; ++i) expected_[at++] = part.from[row * part.pitch + i];
      }
    }
    copy = {to_.data() + shift_, rows, parts_.data(), count, row_bytes};
  }

  bool is_done() const { return to_ == expected_; }

  RowsCopy copy{};

 private:
  std::vector<std::vector<std::byte>> sources_;
  std::vector<RowPart> parts_;
  std::size_t shift_ = 0;
  std::vector<std::byte> to_;
  std::vector<std::byte> expected_;
};

}  // namespace

TEST_CASE("rows are assembled from their parts, and nothing else is touched") {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    AnyCopy any(random, i < 250 ? 5000 : 100000);
    copy_rows(any.copy);
    REQUIRE(any.is_done());
  }
}

TEST_CASE("a copy may be shared at any bytes, streamed or not") {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    AnyCopy any(random, i < 250 ? 3000 : 200000);
    const bool streamed = random() % 2 == 0;
    std::size_t begin = 0;
    while (begin < any.copy.bytes()) {
      const std::size_t left = any.copy.bytes() - begin;
      const std::size_t bytes = random() % 3 == 0 ? left : random() % left + 1;
      copy_part(any.copy, begin, begin + bytes, streamed);
      begin += bytes;
    }
    REQUIRE(any.is_done());
  }
}

TEST_CASE("large copies are streamed and complete") {
  std::mt19937 random(3);
  int large = 0;
  while (large < 3) {
    AnyCopy any(random, 5U << 20U);
    if (any.copy.bytes() < fanout::detail::streamed_from) continue;
    copy_rows(any.copy);
    REQUIRE(any.is_done());
    ++large;
  }
}
