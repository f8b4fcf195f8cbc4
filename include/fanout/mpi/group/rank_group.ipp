// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/rank_group.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

RankGroup::RankGroup(MPI_Comm of, bool survives) : survives_(survives && Ulfm::is_enabled()) {
  if (of == MPI_COMM_NULL) {
    throw InvalidArgument(explain({.what = "no communicator", .where = "mpi::Ranks", .found = "MPI_COMM_NULL"}));
  }
  int joins_two_groups = 0;
  check_mpi(MPI_Comm_test_inter(of, &joins_two_groups), "MPI_Comm_test_inter");
  if (joins_two_groups != 0) {
    throw InvalidArgument(explain({.what = "a communicator between two groups of ranks",
                                   .where = "mpi::Ranks",
                                   .expected = "an intracommunicator",
                                   .found = "an intercommunicator",
                                   .advice = "make one of both groups by MPI_Intercomm_merge"}));
  }
  check_mpi(MPI_Comm_dup(of, &all_), "MPI_Comm_dup");
  prepare(of);
}

void RankGroup::check_survives() {
  if (Ulfm::is_enabled()) return;
  throw Error(explain({.what = "RanksOptions::survive with an MPI that ends the job if a rank dies",
                       .expected = "an MPI with ULFM that was started with it",
                       .advice = "use Open MPI 5 and start the program with mpirun --with-ft ulfm, or leave out "
                                 ".survive"}));
}

int RankGroup::largest_tag() const {
  void* largest = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(all_, MPI_TAG_UB, &largest, &found), "MPI_Comm_get_attr");
  return found != 0 ? *static_cast<int*>(largest) : smallest_largest_tag;
}

RankGroup::RankGroup(const RankGroup& of, Shrunk) : thread_level_(of.thread_level_), survives_(true) {
  const Use use(of);
  if (!of.survives_) {
    throw Error(explain({.what = "ranks that do not survive the loss of one",
                         .where = "Ranks::shrink",
                         .expected = "RanksOptions::survive",
                         .advice = "make them with Ranks{communicator, {.survive = true}}"}));
  }
  all_ = Ulfm::shrink(of.all_);
  prepare(all_);
}

void RankGroup::prepare(MPI_Comm of) {
  try {
    // A duplicate has inherited the user's error handler, which may end the program.
    if (survives_) {
      Ulfm::revoke_if_lost(all_);
    } else {
      check_mpi(MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    check_mpi(MPI_Comm_rank(all_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(all_, &size_), "MPI_Comm_size");
    std::unique_ptr<TimedCommunicator> memory;
    all_have_memory(exception_of([&] {
      hosts_.resize(static_cast<std::size_t>(size_));
      words_.resize(hosts_.size());
      received_.resize(words_.size());
      word_messages_.emplace(all_, 2);
      timed_.emplace(rank_, size_);
      memory = std::make_unique<TimedCommunicator>();
    }));
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    check_mpi(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
    Host own;
    std::copy_n(name, std::min<std::size_t>(sizeof own.name - 1, sizeof name), own.name);
    check_mpi(MPI_Allgather(&own, sizeof own, MPI_CHAR, hosts_.data(), sizeof own, MPI_CHAR, all_), "MPI_Allgather");
    TimedCommunicator& timed = TimedCommunicator::of(of, std::move(memory));
    timed_->open(timed.over, timed.next_tag(largest_tag()));
  } catch (...) {
    MPI_Comm_free(&all_);
    throw;
  }
}

void RankGroup::check_goes_on() const {
  if (!is_over_ || Ulfm::is_revoked(all_)) return;  // if ranks were lost, the exchange says so
  throw Error(explain({.what = "these ranks make no more calls, since ranks were late in an earlier one",
                       .where = "mpi::Ranks",
                       .advice = "make new mpi::Ranks on all ranks, and new models with them, or end the program"}));
}

void RankGroup::all_have_memory(const std::exception_ptr& own) const {
  int failed = own == nullptr ? 0 : rank_ + 1;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, all_), "MPI_Allreduce");
  if (own != nullptr) std::rethrow_exception(own);
  if (failed == 0) return;
  throw Error("mpi::Ranks were not made, since rank " + std::to_string(failed - 1) + " had no memory for them");
}

std::vector<std::size_t> RankGroup::lost() const {
  const Clock::Time end = Clock::after(std::chrono::seconds(2));
  for (const GrowingPause pause;; pause(end)) {
    std::vector<std::size_t> ranks = Ulfm::lost(all_);
    if (!ranks.empty() || Clock::now() >= end) return ranks;
    int is_there = 0;
    MPI_Iprobe(0, 0, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);  // so that MPI looks for news
  }
}

void RankGroup::exchange_words(const Words& mine) const {
  const auto ranks = static_cast<std::size_t>(size_);
  const auto own = static_cast<std::size_t>(rank_);
  received_[0] = mine;
  Messages messages(std::move(*word_messages_));
  for (std::size_t have = 1; have < ranks; have *= 2) {
    const std::size_t bytes = std::min(have, ranks - have) * sizeof(Words);
    messages.receive(&received_[have], bytes, (own + have) % ranks, MessageTag::words);
    messages.send(received_.data(), bytes, (own + ranks - have) % ranks, MessageTag::words);
    const GrowingPause pause;
    for (int tests = 0; !messages.test(); ++tests) {
      resting([tests, &pause] {
        if (tests < tests_before_yield) return;
        // Shards that others wait for need a core, which a thread that only yields may keep from them.
        ShardsMeet::anywhere() ? pause(Clock::never) : std::this_thread::yield();
      });
    }
  }
  word_messages_.emplace(std::move(messages));
  for (std::size_t i = 0; i < ranks; ++i) words_[(own + i) % ranks] = received_[i];
}

void RankGroup::exchange_memory(const std::exception_ptr& own, const std::exception_ptr& failure,
                                std::size_t length) const {
  Words mine = words_[static_cast<std::size_t>(rank_)];
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
