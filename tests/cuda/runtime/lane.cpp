// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include <fanout/cuda/runtime/lane.hpp>

#include "cuda/cards.hpp"

namespace detail = fanout::cuda::detail;

TEST_CASE("lanes of a card are told apart by their number, and made once") {
  if (!fanout_test::has_cards(1)) return;
  const fanout_test::Watched watched;
  detail::Card& card = detail::card_at(0);
  std::vector<detail::Lane*> found(8);
  std::vector<std::thread> threads;
  for (detail::Lane*& lane : found) {
    threads.emplace_back([&lane, &card] {
      lane = &detail::lane_of(card, 3);
      if (lane->id().instance != 3) lane = nullptr;  // it is whole for who did not make it, too
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (detail::Lane* lane : found) CHECK(lane == found[0]);
  detail::Lane& first = detail::lane_of(card, 0);
  CHECK(&first != found[0]);
  CHECK(to_string(first.id()) == "cuda:0");
  CHECK(to_string(found[0]->id()) == "cuda:0#3");
  CHECK(&first.worker() != &found[0]->worker());
  CHECK(first.worker().has_thread());
  CHECK_FALSE(first.worker().bound());
}

TEST_CASE("naming a lane calls nothing of CUDA, and its streams are made once, whichever threads ask") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::Card& card = detail::card_at(0);
  const long calls = stand_in_calls(nullptr);
  detail::Lane& lane = detail::lane_of(card, 17);
  lane.synchronize();
  CHECK(stand_in_calls(nullptr) == calls);
  const int streams = stand_in_alive("streams");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&lane] {
      static_cast<void>(lane.compute());
      static_cast<void>(lane.copies());
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(stand_in_alive("streams") == streams + 2);
  CHECK(lane.compute().get() != lane.copies().get());
}

TEST_CASE("a thread's lane of a card is the last it entered, or the shared outside lane") {
  if (!fanout_test::has_cards(1)) return;
  const fanout_test::Watched watched;
  detail::Card& card = detail::card_at(0);
  detail::Card& other = detail::card_at(detail::count_cards().count - 1);
  detail::Lane& zero = detail::lane_of(card, 0);
  detail::Lane& one = detail::lane_of(card, 1);
  detail::Lane& outside = detail::lane_of(card, detail::Lane::outside);
  CHECK(&detail::current_lane(card) == &outside);
  {
    const detail::EnteredLane entered(one);
    CHECK(&detail::current_lane(card) == &one);
    if (&other != &card) {
      const detail::EnteredLane elsewhere(detail::lane_of(other, 2));
      CHECK(&detail::current_lane(card) == &one);
      CHECK(&detail::current_lane(other) == &detail::lane_of(other, 2));
    }
    std::thread([&] { CHECK(&detail::current_lane(card) == &outside); }).join();
    {
      const detail::EnteredLane inner(zero);
      CHECK(&detail::current_lane(card) == &zero);
    }
    CHECK(&detail::current_lane(card) == &one);
  }
  CHECK(&detail::current_lane(card) == &outside);
}

TEST_CASE("a lane that cannot be entered is not entered") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::Card& card = detail::card_at(0);
  card.context();
  const int depth = stand_in_depth();
  stand_in_fail("cuCtxPushCurrent", 1, 1, cudaErrorInvalidValue);
  CHECK_THROWS_AS(detail::EnteredLane(detail::lane_of(card, 1)), fanout::cuda::CudaError);
  CHECK(&detail::current_lane(card) == &detail::lane_of(card, detail::Lane::outside));
  CHECK(stand_in_depth() == depth);
}
