// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <vector>

#include <fanout/base/error.hpp>
#include <support/message_of.hpp>

namespace {

using fanout::detail::RendezvousPlaces;
using fanout::detail::RendezvousTags;

/// All tags of a call with so many shards on each of two processes.
std::set<int> tags_of(const RendezvousPlaces& places) {
  using Stream = RendezvousPlaces::Stream;
  std::set<int> tags;
  for (const Stream stream : {Stream::notes, Stream::collectives, Stream::between_two, Stream::releases}) {
    for (std::size_t from = 0; from < places.size(); ++from) {
      for (std::size_t to = 0; to < places.size(); ++to) tags.insert(places.tag(stream, from, to));
    }
  }
  return tags;
}

}  // namespace

TEST_CASE("calls at the same time have other tags, also with other numbers of shards") {
  RendezvousTags tags;
  std::set<int> used;
  for (const std::size_t shards : {1U, 2U, 1U, 1U, 3U, 1U, 2U}) {
    const std::set<int> own = tags_of(RendezvousPlaces({shards, shards}, tags, 32767));
    CHECK(own.size() == 4 * shards * shards);
    for (const int tag : own) CHECK(used.insert(tag).second);
  }
  CHECK(*used.begin() >= fanout::detail::MessageTag::rendezvous);
}

TEST_CASE("tags begin anew before they are too large, and are refused if there are too few for two calls") {
  constexpr int largest = fanout::detail::MessageTag::rendezvous + 2 * 16 + 4;
  RendezvousTags tags;
  for (int call = 0; call < 20; ++call) {
    const std::set<int> own = tags_of(RendezvousPlaces({call % 3 == 0 ? 1U : 2U, 1}, tags, largest));
    CHECK(*own.begin() >= fanout::detail::MessageTag::rendezvous);
    CHECK(*own.rbegin() <= largest);
  }
  CHECK(fanout_test::message_of<fanout::Error>([&] {
          RendezvousPlaces({3, 1}, tags, largest);
        }).find("too many shards on a rank") != std::string::npos);
}
