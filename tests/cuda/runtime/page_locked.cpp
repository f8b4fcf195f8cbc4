// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstring>

#include <fanout/cuda/runtime/page_locked.hpp>

#include "cuda/cards.hpp"

namespace detail = fanout::cuda::detail;

TEST_CASE("page-locked memory belongs to no card that was not used before") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  detail::card_at(1).context();
  const int contexts = stand_in_contexts();
  detail::Card& card = detail::any_card();
  CHECK(card.known_context() != nullptr);
  const std::size_t before = stand_in_bytes_in_use(-1);
  void* data = detail::allocate_page_locked(1000, card);
  std::memset(data, 1, 1000);
  CHECK(stand_in_bytes_in_use(-1) >= before + 1000);
  detail::release_page_locked(data, card);
  CHECK(stand_in_bytes_in_use(-1) == before);
  CHECK(stand_in_contexts() == contexts);
}

TEST_CASE("page-locked memory that cannot be had is OutOfMemory") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  stand_in_fail("cudaHostAlloc", 1, 1, cudaErrorMemoryAllocation);
  const std::string message = fanout_test::message_of([] { detail::allocate_page_locked(12345, detail::any_card()); });
  CHECK(message.find("out of page-locked host memory: expected 12345 bytes") == 0);
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
}
