// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/reduction/value_blocks.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// How values are cut into blocks. No rank waits for another one here.

namespace {

using fanout::backend::RankedValue;
using fanout::backend::RankFold;
using fanout::detail::ValueBlock;
using fanout::detail::ValueBlocks;
using fanout::detail::ValuePart;

constexpr RankFold fold_of(std::size_t element) {
  return {.name = nullptr, .element_size = element, .counts_empty = true, .may_throw = false, .combine = nullptr};
}

/// Memory of values with so many elements of so many bytes. Byte i of a value is i * 7.
struct Values {
  struct Size {
    std::size_t element;
    std::size_t count;
  };

  explicit Values(const std::vector<Size>& sizes) : folds(sizes.size()), memory(sizes.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      folds[i] = fold_of(sizes[i].element);
      memory[i].resize(sizes[i].element * sizes[i].count);
      for (std::size_t k = 0; k < memory[i].size(); ++k) memory[i][k] = static_cast<std::byte>(k * 7);
      values.push_back({.fold = &folds[i], .data = memory[i].data(), .count = sizes[i].count});
    }
  }

  std::vector<RankFold> folds;
  std::vector<std::vector<std::byte>> memory;
  std::vector<RankedValue> values;
};

/// All blocks in the order of the ranks: they hold each element once, in order, and messages that fit.
void check_blocks(const Values& values, std::size_t ranks) {
  const ValueBlocks blocks(values.values, ranks);
  std::size_t value = 0;
  std::size_t element = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t round = 0; blocks.has(rank, round); ++round) {
      REQUIRE(round < blocks.rounds());
      const ValueBlock block = blocks.of(rank, round);
      std::size_t end = 0;
      for (const ValuePart& part : block) {
        while (values.values[value].count == element) {
          ++value;
          element = 0;
        }
        REQUIRE(part.fold == &values.folds[value]);
        REQUIRE(part.data == values.memory[value].data() + element * part.fold->element_size);
        REQUIRE(part.count != 0);
        REQUIRE(part.at >= end);
        if (part.fold->element_size == 24) REQUIRE(part.at % 8 == 0);
        if (part.fold->element_size != 24 && part.fold->element_size <= 8)
          REQUIRE(part.at % part.fold->element_size == 0);
        end = part.at + part.bytes();
        element += part.count;
      }
      REQUIRE(block.bytes() == end);
      REQUIRE(block.bytes() <= blocks.largest());
      REQUIRE((!block.is_packed() || blocks.any_packed()));
    }
  }
  std::size_t all = 0;
  for (std::size_t i = 0; i < value; ++i) all += values.values[i].count;
  std::size_t expected = 0;
  for (const RankedValue& each : values.values) expected += each.count;
  CHECK(all + element == expected);
}

/// Bytes that a rank combines.
std::size_t bytes_of(const ValueBlocks& blocks, std::size_t rank) {
  std::size_t bytes = 0;
  for (std::size_t round = 0; blocks.has(rank, round); ++round) {
    for (const ValuePart& part : blocks.of(rank, round)) bytes += part.bytes();
  }
  return bytes;
}

}  // namespace

TEST_CASE("blocks hold each element of the values once, in order") {
  const Values values({{4, 1'000'003}, {8, 1}, {1, 3}, {4, 0}, {24, 77}, {8, 130'000}, {2, 5}});
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 8U, 1000U}) check_blocks(values, ranks);
  for (const std::size_t ranks : {1U, 3U}) {
    check_blocks(Values({{4, 1}}), ranks);
    check_blocks(Values({{std::size_t{1} << 20, 5}, {1, 1}}), ranks);  // elements larger than a block
  }
  std::vector<Values::Size> many;
  for (std::size_t i = 0; i < 3000; ++i) many.push_back({i % 3 == 0 ? std::size_t{8} : std::size_t{4}, i % 300});
  for (const std::size_t ranks : {1U, 2U, 3U, 8U}) check_blocks(Values(many), ranks);
  CHECK(ValueBlocks({}, 3).rounds() == 0);
}

TEST_CASE("ranks combine about as many bytes each") {
  const Values values({{4, 1'000'003}, {8, 100'000}, {4, 3}});
  for (const std::size_t ranks : {2U, 3U, 4U, 8U}) {
    const ValueBlocks blocks(values.values, ranks);
    const double even = (1'000'006.0 * 4 + 800'000) / static_cast<double>(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CHECK(static_cast<double>(bytes_of(blocks, rank)) == doctest::Approx(even).epsilon(0.01));
    }
  }
}

TEST_CASE("many small values travel in one round") {
  const ValueBlocks blocks(Values(std::vector<Values::Size>(100, {8, 1})).values, 8);
  CHECK(blocks.rounds() == 1);
  CHECK(blocks.any_packed());
  CHECK(blocks.largest() == 128);
}

TEST_CASE("a packed block is copied to its message and back, and a block of one part is not") {
  Values values({{4, 3}, {8, 2}});
  const ValueBlocks blocks(values.values, 1);
  const ValueBlock both = blocks.of(0, 0);
  std::array<std::byte, 32> room{};
  REQUIRE(both.bytes() == 32);
  CHECK(both.pack(room.data()) == room.data());
  CHECK(both.place(room.data()) == room.data());
  CHECK(std::memcmp(room.data(), values.memory[0].data(), 12) == 0);
  CHECK(std::memcmp(room.data() + 16, values.memory[1].data(), 16) == 0);
  room[0] = room[31] = std::byte{99};
  both.unpack(room.data());
  CHECK(values.memory[0][0] == std::byte{99});
  CHECK(values.memory[1][15] == std::byte{99});

  const ValueBlocks one(Values({{4, 3}}).values, 1);
  CHECK(!one.any_packed());
  CHECK(one.of(0, 0).pack(room.data()) != room.data());
}
