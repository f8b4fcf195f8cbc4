// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/rank_group.hpp>

#include <algorithm>
#include <thread>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

RankGroup::RankGroup(const RankMail& mail) : mail_(mail), timed_(mail), gathered_(mail) {
  mail.all_have_memory(exception_of([&] {
    timed_.prepare();
    words_.resize(mail.size());
    received_.resize(mail.size());
    gathered_.reserve(2);
  }));
}

void RankGroup::check_goes_on() const {
  if (!is_over_ || mail_.is_lost()) return;  // if ranks were lost, the exchange says so
  throw Error(explain({.what = "these ranks make no more calls, since ranks were late in an earlier one",
                       .where = "mpi::Ranks",
                       .advice = "make new mpi::Ranks on all ranks, and new models with them, or end the program"}));
}

void RankGroup::all_gather(void* received, std::size_t bytes) const {
  const std::size_t ranks = mail_.size();
  const std::size_t own = mail_.rank();
  auto* const rooms = static_cast<std::byte*>(received);
  Messages& messages = gathered_;
  struct Guard {
    ~Guard() { messages.give_up_all(); }  // after an error
    Messages& messages;
  } const guard{messages};
  for (std::size_t have = 1; have < ranks; have *= 2) {
    const std::size_t count = std::min(have, ranks - have);
    messages.receive(rooms + have * bytes, count * bytes, (own + have) % ranks, MessageTag::words);
    messages.send(rooms, count * bytes, (own + ranks - have) % ranks, MessageTag::words);
    const GrowingPause pause;
    for (int tests = 0; !messages.test(); ++tests) {
      resting([tests, &pause] {
        if (tests < tests_before_yield) return;
        // Shards that others wait for need a core, which a thread that only yields may keep from them.
        ShardsMeet::anywhere() ? pause(Clock::never) : std::this_thread::yield();
      });
    }
  }
}

void RankGroup::exchange_words(const Words& mine) const {
  received_[0] = mine;
  all_gather(received_.data(), sizeof(Words));
  for (std::size_t i = 0; i < words_.size(); ++i) words_[(mail_.rank() + i) % words_.size()] = received_[i];
}

void RankGroup::exchange_memory(const std::exception_ptr& own, const std::exception_ptr& failure,
                                std::size_t length) const {
  Words mine = words_[mail_.rank()];
  mine.hash = failure == nullptr ? 0 : 1;
  mine.rows = length;
  exchange_words(mine);
  std::size_t without = 0;
  while (without < words_.size() && words_[without].hash == 0) ++without;
  if (without == words_.size()) return;
  if (own != nullptr) std::rethrow_exception(own);
  if (failure != nullptr) std::rethrow_exception(failure);
  throw Error("a call of all ranks failed, and " + name_of(without) + " had no memory to say why");
}

}}}  // namespace fanout::v0::detail
