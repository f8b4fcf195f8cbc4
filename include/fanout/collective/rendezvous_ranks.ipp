// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/rendezvous_ranks.hpp>

#include <string>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void RendezvousRanks::leave(std::size_t rank, const std::exception_ptr& why) noexcept {
  const Held held(mutex_);
  Rank& self = ranks_[rank];
  if (!self.gone) {
    self.culprit = rank;
    self.gone = true;
    ++gone_;
  }
  if (why != nullptr) self.retain(why);
  signal();
}

backend::Collective* RendezvousRanks::next_to_receive(std::size_t rank) noexcept {
  Rank& self = ranks_[rank];
  if (broken_ != nullptr || self.verdict.what != Verdict::none) return nullptr;
  for (std::size_t i = 0; i < self.count; ++i) {
    backend::Collective& call = self.calls[i];
    if (call.kind == backend::Collective::Kind::recv && call.progress == Progress::open &&
        sent(rank, call) != nullptr) {
      return &call;
    }
  }
  return nullptr;
}

bool RendezvousRanks::judge(std::size_t rank) noexcept {
  Rank& self = ranks_[rank];
  if (round_ != 0 || self.moving != 0) return false;
  if (broken_ != nullptr) {
    self.verdict = Verdict::made_by([this] { return Verdict{.what = Verdict::broken, .text = broken_}; });
    return true;
  }
  if (const backend::Collective* call = abandoned(self)) {
    const std::size_t culprit = ranks_[needed_by(*call)].culprit;
    self.verdict = Verdict::made_by(
        [&] { return Verdict::of_rank_that_left(Rank::text_of(rank, *call), culprit, ranks_[culprit]); });
    return true;
  }
  if (inside_ + gone_ < size() || !all_wait()) return false;
  for (std::size_t i = 0; i < size(); ++i) round_calls_[i] = ranks_[i].first_open();
  judge_all(Fit::other_structure, round_calls_.data());
  return true;
}

const backend::Collective* RendezvousRanks::abandoned(const Rank& rank) const noexcept {
  for (std::size_t i = 0; i < rank.count && gone_ != 0; ++i) {
    const backend::Collective& call = rank.calls[i];
    if (call.progress == Progress::open && ranks_[needed_by(call)].gone) return &call;
  }
  return nullptr;
}

bool RendezvousRanks::all_wait() noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    const Rank& rank = ranks_[i];
    if (rank.inside && (rank.left == 0 || rank.moving != 0 || rank.verdict.what != Verdict::none)) return false;
    if (rank.inside && (next_to_receive(i) != nullptr || abandoned(rank) != nullptr)) return false;
  }
  return true;
}

void RendezvousRanks::judge_all(Fit fit, const backend::Collective* const* calls) noexcept {
  const Verdict verdict = Verdict::made_by([&] {
    Text text;
    bool between_two = false;
    for (std::size_t i = 0; i < size(); ++i) {
      between_two = between_two || (calls[i] != nullptr && calls[i]->is_between_two());
      if (i != 0) text << ", ";
      if (calls[i] != nullptr) {
        text << Rank::text_of(i, *calls[i]);
      } else {
        text << "rank " << i << " has left";
      }
    }
    if (!between_two) return Verdict::of(fit, text);
    return Verdict::of(fit, text,
                       "send and recv wait for each other: ranks that exchange arrays call both in a group(), and each "
                       "send needs a recv");
  });
  for (Rank& rank : ranks_) {
    if (rank.inside) rank.verdict = Verdict::made_by([&] { return verdict; });
  }
  signal();
}

std::size_t RendezvousRanks::first_gone() const noexcept {
  std::size_t found = size();
  for (std::size_t i = size(); i > 0; --i) {
    if (ranks_[i - 1].gone && (found == size() || ranks_[i - 1].threw())) found = i - 1;
  }
  return found;
}

void RendezvousRanks::wait(Held& held, Clock::Time until) noexcept {
  const std::uint32_t turn = turn_.load(MemoryOrder::relaxed);
  ++sleepers_;
  held.unlock();
  if (until == Clock::never) {
    park(turn_, turn);
  } else {
    park_until(turn_, turn, until);
  }
  held.lock();
  --sleepers_;
}

}}}  // namespace fanout::v0::detail
