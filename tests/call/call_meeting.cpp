// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <vector>

#include <fanout/call/call_meeting.hpp>

namespace {

using fanout::detail::CallMeeting;

struct Place : CallMeeting::Place {
  Place(CallMeeting&, std::size_t so_many)
      : CallMeeting::Place{.leave =
                               [](CallMeeting::Place& self, std::size_t shard, const std::exception_ptr& why) noexcept {
                                 auto& counts = static_cast<Place&>(self).left;
                                 counts[shard] += why == nullptr ? 1 : 10;
                               },
                           .destroy =
                               [](CallMeeting::Place* self) noexcept {
                                 ++destroyed;
                                 delete static_cast<Place*>(self);
                               }},
        left(so_many) {}
  std::vector<int> left;
  static inline int destroyed = 0;
};

}  // namespace

TEST_CASE("a place is made once, hears of who has ended before and after, and goes with the call") {
  const int before = Place::destroyed;
  {
    CallMeeting meeting(3);
    meeting.end(1, nullptr);
    auto& place = meeting.place<Place>();
    CHECK(&meeting.place<Place>() == &place);
    CHECK(place.left == std::vector<int>{0, 1, 0});
    meeting.end(2, std::make_exception_ptr(std::runtime_error("")));
    CHECK(place.left == std::vector<int>{0, 1, 10});
    CHECK(Place::destroyed == before);
  }
  CHECK(Place::destroyed == before + 1);
}

TEST_CASE("without tasks there is nothing to take back") {
  CallMeeting meeting(1);
  CHECK(meeting.take_back() == nullptr);
}

TEST_CASE("shards of a call in which nobody noted who has ended cannot meet") {
  CallMeeting meeting(2, false);
  meeting.end(0, nullptr);
  CHECK_THROWS_AS(meeting.place<Place>(), fanout::Error);
}
