// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstring>

#include <fanout/cuda/runtime/page_locked.hpp>

#include "cuda/cards.hpp"

namespace detail = fanout::cuda::detail;

namespace {

/// No card has been named, as in a new process, for as long as this lives; and then those that were.
class NoCardNamed {
 public:
  NoCardNamed() {
    for (int i = 0; i < detail::most_cards; ++i) before_[i] = detail::cards[i].card.exchange(nullptr);
  }
  NoCardNamed(const NoCardNamed&) = delete;
  NoCardNamed& operator=(const NoCardNamed&) = delete;
  ~NoCardNamed() {
    for (int i = 0; i < detail::most_cards; ++i) delete detail::cards[i].card.exchange(before_[i]);
  }

 private:
  detail::Card* before_[detail::most_cards] = {};
};

}  // namespace

TEST_CASE("work without a card of its own uses a context in use, or else the first card's") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const NoCardNamed fresh;
  CHECK(detail::any_card().index() == 0);
  CHECK(detail::any_card().known_context() == nullptr);
  const int last = detail::count_cards().count - 1;
  detail::card_at(last).context();
  CHECK(detail::any_card().index() == last);
  detail::losses[last].code.store(cudaErrorIllegalAddress);
  CHECK(detail::any_card().index() == 0);
  detail::losses[last].code.store(cudaSuccess);
}

TEST_CASE("allocating page-locked memory makes no context on unused cards") {
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
