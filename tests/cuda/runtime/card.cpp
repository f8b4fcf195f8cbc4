// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include <fanout/cuda/runtime/card.hpp>

#include "cuda/cards.hpp"

namespace detail = fanout::cuda::detail;
using fanout_test::message_of;

TEST_CASE("count_cards gives the runtime's number of cards, also when cached") {
  int said = 0;
  if (::cudaGetDeviceCount(&said) != cudaSuccess) static_cast<void>(::cudaGetLastError());
  for (int i = 0; i < 2; ++i) CHECK(detail::count_cards().count == std::min(said, detail::most_cards));
}

TEST_CASE("a card is the same object whoever names it, and knows its place") {
  if (!fanout_test::has_cards(1)) return;
  const fanout_test::Watched watched;
  detail::Card& card = detail::card_at(0);
  CHECK(&detail::card_at(0) == &card);
  CHECK(card.index() == 0);
  CHECK(to_string(card.space()) == "the memory of cuda:0");
  CHECK(card.properties().multiProcessorCount > 0);
  CHECK(&card.properties() == &card.properties());
}

TEST_CASE("an index that is not visible is an Invalid device id, and those that are visible are named") {
  const int count = detail::count_cards().count;
  for (const int index : {-1, count, detail::most_cards, 100000}) {
    const std::string message = message_of([&] { detail::card_at(index); });
    CHECK(message.find("Invalid device id") == 0);
    CHECK(message.find("found " + std::to_string(index)) != std::string::npos);
    CHECK(message.find(count == 0 ? "of which there is none" : "(cuda:0") != std::string::npos);
    CHECK_THROWS_AS(detail::card_at(index), fanout::InvalidDeviceId);
  }
}

TEST_CASE("naming a card and asking for its properties makes no context, using it makes one there only") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const int last = detail::count_cards().count - 1;
  const int before = stand_in_has_context(last);
  detail::Card& card = detail::card_at(last);
  static_cast<void>(card.properties());
  CHECK(stand_in_has_context(last) == before);
  const int contexts = stand_in_contexts();
  CUcontext context = card.context();
  CHECK(card.context() == context);
  CHECK(card.known_context() == context);
  CHECK(stand_in_has_context(last) == 1);
  CHECK(stand_in_contexts() == contexts + (before == 0 ? 1 : 0));
}

TEST_CASE("a context that cannot be had is an error, and the next use tries again") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  detail::Card fresh(1);
  stand_in_fail("cuDevicePrimaryCtxRetain", 1, 1, cudaErrorDevicesUnavailable);
  CHECK_THROWS_AS(fresh.context(), fanout::cuda::CudaError);
  CHECK(fresh.context() != nullptr);
}

TEST_CASE("a card that is lost is not asked any more") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::Card& card = detail::card_at(0);
  card.context();
  CHECK(card.usable());
  detail::note(cudaErrorIllegalAddress, 0);
  CHECK_FALSE(card.usable());
  const long calls = stand_in_calls(nullptr);
  CHECK_THROWS_AS(card.context(), fanout::cuda::DeviceLost);
  CHECK_THROWS_AS(card.require(), fanout::cuda::DeviceLost);
  CHECK(stand_in_calls(nullptr) == calls);
}

TEST_CASE("rule 158: a child of a process that used CUDA cannot, and says so") {
  if (!fanout_test::has_cards(1)) return;
  const fanout_test::Watched watched;
  detail::Card& card = detail::card_at(0);
  card.context();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool right = detail::count_cards().count == 0 && !card.usable();
    for (const auto& use : {+[] { detail::card_at(0).context(); }, +[] { detail::card_at(0).require(); }}) {
      right = right && message_of(use).find("Cannot re-initialize CUDA in forked subprocess") == 0;
    }
    ::_exit(right ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == EXIT_SUCCESS);
  CHECK_NOTHROW(card.require());
}
