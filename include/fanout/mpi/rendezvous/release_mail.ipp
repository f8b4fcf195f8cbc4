// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/release_mail.hpp>

namespace fanout { inline namespace v0 { namespace detail {

ReleaseMail::ReleaseMail(const RankMail& mail, const RendezvousPlaces& places, std::size_t process)
    : mail_(mail), tag_(places.tag_of_processes(RendezvousPlaces::Stream::releases)) {
  for (const std::size_t leader : places.leaders()) {
    if (places.process(leader) != process) others_.push_back(Other{.process = places.process(leader)});
  }
  for (Other& each : others_) {
    each.receives = mail_.receive({&each.word, sizeof each.word}, {.rank = each.process, .tag = tag_});
  }
}

void ReleaseMail::send(std::uint64_t word) {
  if (has_sent_) return;
  has_sent_ = true;
  word_ = word;
  for (Other& each : others_) {
    each.sends = mail_.send({&word_, sizeof word_}, {.rank = each.process, .tag = tag_});
  }
}

std::uint64_t ReleaseMail::poll() {
  for (Other& each : others_) {
    if (each.has_come || !mail_.test(each.receives)) continue;
    each.has_come = true;
    if (each.word != 0 && heard_ == 0) heard_ = each.word;
    ++received_;
  }
  return heard_;
}

bool ReleaseMail::is_done() {
  if (missing() != 0 || !has_sent_) return false;
  for (Other& each : others_) {
    if (!mail_.test(each.sends)) return false;
  }
  return true;
}

}}}  // namespace fanout::v0::detail
