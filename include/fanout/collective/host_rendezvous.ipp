// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/host_rendezvous.hpp>

#include <vector>

#include <fanout/base/text.hpp>
#include <fanout/collective/run_direct.hpp>

namespace fanout { inline namespace v0 { namespace backend {

void HostRendezvous::begin_round() noexcept {
  if (round_ != 0 || inside_ != size() || broken_ != nullptr) return;
  for (std::size_t i = 0; i < size(); ++i) {
    if (ranks_[i].verdict.what != Verdict::none) return;
    round_calls_[i] = ranks_[i].next_of_all();
  }
  detail::Fit fit = detail::Fit::fits;
  std::size_t fitting = 0;
  while (fit == detail::Fit::fits && all_have_next()) {
    for (std::size_t i = 1; i < size() && fit == detail::Fit::fits; ++i) {
      fit = detail::fit(*round_calls_[0], *round_calls_[i]);
    }
    if (fit != detail::Fit::fits) break;
    ++fitting;
    step(round_calls_.data());
  }
  if (fitting == 0 && fit != detail::Fit::fits) return judge_all(fit, round_calls_.data());
  if (fitting == 0) return;
  round_ = fitting;
  working_ = size();
  for (Rank& rank : ranks_) rank.worked = false;
  signal();
}

bool HostRendezvous::all_have_next() const noexcept {
  for (const Collective* call : round_calls_) {
    if (call == nullptr) return false;
  }
  return true;
}

void HostRendezvous::work(std::size_t rank, detail::InlineArray<const Collective*>& calls, Held& held) noexcept {
  ranks_[rank].worked = true;
  held.unlock();
  for (std::size_t i = 0; i < size(); ++i) calls[i] = ranks_[i].next_of_all();
  Verdict failure;
  for (std::size_t k = 0; k < round_; ++k) {
    detail::HostCollective(calls.data(), size()).run_part_of(rank, k);
    step(calls.data());
  }
  if (rank == 0) failure = run_direct_round();
  held.lock();
  if (failure.what != Verdict::none) round_failure_ = std::move(failure);
  if (--working_ == 0) end_round();
}

void HostRendezvous::end_round() noexcept {
  for (Rank& rank : ranks_) {
    for (std::size_t k = 0; k < round_; ++k) rank.finish(*rank.next_of_all());
    if (round_failure_.what != Verdict::none) {
      rank.verdict = Verdict::made_by([this] { return round_failure_; });
    }
  }
  round_failure_ = {};
  round_ = 0;
  signal();
  begin_round();
}

HostRendezvous::Verdict HostRendezvous::run_direct_round() noexcept {
  return Verdict::made_by([this]() -> Verdict {
    std::vector<RankedCall> direct;
    for (std::size_t i = 0; i < size(); ++i) {
      const Collective* call = ranks_[i].next_of_all();
      for (std::size_t k = 0; k < round_; ++k, call = ranks_[i].next_of_all(call)) {
        if (call->direct) direct.push_back({.rank = i, .call = call});
      }
    }
    if (direct.empty()) return {};
    return detail::run_direct(*direct_, direct);
  });
}

void HostRendezvous::receive(std::size_t rank, Collective& recv, Held& held) noexcept {
  Rank& self = ranks_[rank];
  Rank& other = ranks_[recv.root];
  Collective& send = *sent(rank, recv);
  if (const detail::Fit fit = detail::fit(send, recv); fit != detail::Fit::fits) {
    const auto verdict = [&] {
      return Verdict::of(fit, detail::Text() << Rank::text_of(recv.root, send) << ", " << Rank::text_of(rank, recv),
                         "send and receive arrays of the same type and extents");
    };
    self.verdict = Verdict::made_by(verdict);
    other.verdict = Verdict::made_by(verdict);
    return signal();
  }
  recv.progress = send.progress = Progress::moving;
  ++self.moving;
  ++other.moving;
  held.unlock();
  Verdict failure;
  if (recv.direct) {
    const RankedCall both[] = {{.rank = recv.root, .call = &send}, {.rank = rank, .call = &recv}};
    failure = detail::run_direct(*direct_, both);
  } else {
    detail::copy_elements(recv.to, send.from, recv.bytes());
  }
  held.lock();
  --self.moving;
  --other.moving;
  self.finish(recv);
  other.finish(send);
  if (failure.what != Verdict::none) {
    other.verdict = Verdict::made_by([&] { return failure; });
    self.verdict = std::move(failure);
  }
  signal();
}

}}}  // namespace fanout::v0::backend
