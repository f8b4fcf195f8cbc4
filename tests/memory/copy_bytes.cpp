// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include <fanout/memory/copy_bytes.hpp>

using fanout::detail::copy_bytes;
using fanout::detail::settle_streams;
using fanout::detail::stream_bytes;
using fanout::detail::streamed_from;

namespace {

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Whether `size` bytes were copied to their place, and nothing beside it was touched.
bool is_copied(const std::vector<std::byte>& to, std::size_t at, const std::vector<std::byte>& from, std::size_t start,
               std::size_t size) {
  for (std::size_t i = 0; i < at; ++i) {
    if (to[i] != std::byte{0x5a}) return false;
  }
  for (std::size_t i = at + size; i < to.size(); ++i) {
    if (to[i] != std::byte{0x5a}) return false;
  }
  return size == 0 || std::memcmp(to.data() + at, from.data() + start, size) == 0;
}

}  // namespace

TEST_CASE("streaming copies any bytes at any alignment and touches nothing else") {
  constexpr std::size_t room = 80000;
  const std::vector<std::byte> from = random_bytes(room + 64, 1);
  std::mt19937 random(2);
  for (int i = 0; i < 400; ++i) {
    const std::size_t size = i < 300 ? static_cast<std::size_t>(i) : random() % room;
    const std::size_t at = random() % 70;
    const std::size_t start = random() % 64;
    std::vector<std::byte> to(room + 140, std::byte{0x5a});
    stream_bytes(to.data() + at, from.data() + start, size);
    settle_streams();
    REQUIRE(is_copied(to, at, from, start, size));
  }
}

TEST_CASE("bytes are copied on both sides of the size from which copies are streamed") {
  const std::vector<std::byte> from = random_bytes(streamed_from + 4099, 3);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, streamed_from - 1, streamed_from, streamed_from + 4097}) {
    std::vector<std::byte> to(streamed_from + 5000, std::byte{0x5a});
    copy_bytes(to.data() + 3, from.data() + 2, size);
    CHECK(is_copied(to, 3, from, 2, size));
  }
  CHECK_NOTHROW(copy_bytes(nullptr, nullptr, 0));
}
