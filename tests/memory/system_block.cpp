// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <fanout/memory/system_block.hpp>

using fanout::detail::get_system_block;
using fanout::detail::huge_page;
using fanout::detail::release_system_block;

TEST_CASE("blocks of the system can be written from end to end, and the large ones begin with a huge page") {
  for (const std::size_t bytes : {std::size_t{64}, huge_page - 64, huge_page, huge_page / 2 * 5, 8 * huge_page}) {
    void* const block = get_system_block(bytes);
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % (bytes < huge_page ? fanout::detail::cores_apart : huge_page) == 0);
    std::memset(block, 0x5a, bytes);
    CHECK(static_cast<unsigned char*>(block)[bytes - 1] == 0x5a);
    release_system_block(block, bytes);
  }
}

TEST_CASE("a block larger than the address space is not allocated") {
  CHECK(get_system_block(~std::size_t{0} - 4095) == nullptr);
  CHECK(get_system_block(std::size_t{1} << 62U) == nullptr);
}
