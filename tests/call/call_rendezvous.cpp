// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <vector>

#include <fanout/call/call_rendezvous.hpp>
#include <fanout/collective/process_rendezvous.hpp>

namespace {

using fanout::detail::CallRendezvous;

struct Place final : CallRendezvous::Place {
  Place(CallRendezvous&, std::size_t so_many) : left(so_many) {}
  ~Place() override { ++destroyed; }
  void leave(std::size_t shard, const std::exception_ptr& why) noexcept override {
    left[shard] += why == nullptr ? 1 : 10;
  }
  std::vector<int> left;
  static inline int destroyed = 0;
};

struct Processes final : fanout::backend::ProcessRendezvous {
  void meet(std::size_t, fanout::backend::Collective*, std::size_t, const Help&) override {}
  void leave(std::size_t rank, const std::exception_ptr& why) noexcept override {
    left[rank] += why == nullptr ? 1 : 10;
  }
  void break_off(const char*) noexcept override {}

  std::vector<int> left = std::vector<int>(5);
};

}  // namespace

TEST_CASE("a rendezvous is made once, learns of earlier and later shard ends, and is destroyed with the call") {
  const int before = Place::destroyed;
  {
    CallRendezvous rendezvous(3, true);
    rendezvous.end(1, nullptr);
    auto& place = rendezvous.place<Place>();
    CHECK(&rendezvous.place<Place>() == &place);
    CHECK(place.left == std::vector<int>{0, 1, 0});
    rendezvous.end(2, std::make_exception_ptr(std::runtime_error("")));
    CHECK(place.left == std::vector<int>{0, 1, 10});
    CHECK(Place::destroyed == before);
  }
  CHECK(Place::destroyed == before + 1);
}

TEST_CASE("a rendezvous learns of earlier shard ends, also with more than 64 shards") {
  CallRendezvous rendezvous(65, true);
  for (const std::size_t shard : {std::size_t{31}, std::size_t{63}, std::size_t{64}}) rendezvous.end(shard, nullptr);
  const std::vector<int>& left = rendezvous.place<Place>().left;
  for (std::size_t shard = 0; shard < 65; ++shard) {
    CHECK(left[shard] == (shard == 31 || shard == 63 || shard == 64 ? 1 : 0));
  }
}

TEST_CASE("other processes learn of a shard that ends before any shard of its own process meets others") {
  Processes processes;
  CallRendezvous rendezvous(3, true);
  rendezvous.way_is({.processes = &processes, .first_shard = 2});
  rendezvous.end(1, std::make_exception_ptr(std::runtime_error("")));
  CHECK(processes.left == std::vector<int>{0, 0, 0, 10, 0});
  rendezvous.end(0, nullptr);
  CHECK(processes.left == std::vector<int>{0, 0, 1, 10, 0});
  CHECK(rendezvous.place<Place>().left == std::vector<int>{1, 1, 0});
  rendezvous.end(2, nullptr);  // now the place tells them
  CHECK(processes.left == std::vector<int>{0, 0, 1, 10, 0});
}

TEST_CASE("without tasks there is nothing to take back") {
  CallRendezvous rendezvous(1, true);
  CHECK(rendezvous.take_back() == nullptr);
}

TEST_CASE("a rendezvous is refused in a call that does not note shard ends") {
  CallRendezvous rendezvous(2, false);
  rendezvous.end(0, nullptr);
  CHECK_THROWS_AS(rendezvous.place<Place>(), fanout::Error);
}
