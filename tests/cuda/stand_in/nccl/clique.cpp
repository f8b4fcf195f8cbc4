// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "clique.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "../cudart/hooks.hpp"

namespace stand_in_nccl {
namespace {

/// How long a rank waits for the others before it names the missing ones.
std::chrono::milliseconds patience() {
  static const auto value = [] {
    const char* const set = std::getenv("FANOUT_STAND_IN_PATIENCE_MS");
    return std::chrono::milliseconds(set == nullptr ? 20000 : std::atoi(set));
  }();
  return value;
}

bool same(const Operation& one, const Operation& other) {
  return std::strcmp(one.name, other.name) == 0 && one.count == other.count && one.type == other.type &&
         one.reduction == other.reduction && one.other == other.other;
}

}  // namespace

Clique::Clique(unsigned number, int ranks) : number_(number) {
  for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>());
}

void Clique::fail(const char* call, const std::string& what) {
  stand_in_report(call, what.c_str());
  set_last_error(what);
  for (const auto& rank : ranks_) rank->error.store(ncclInvalidUsage, std::memory_order_relaxed);
}

std::string Clique::who_is_missing(const Meeting& meeting) const {
  std::string said;
  for (std::size_t rank = 0; rank < meeting.here.size(); ++rank) {
    if (!meeting.here[rank]) said += (said.empty() ? "" : ", ") + std::to_string(rank);
  }
  return said;
}

bool Clique::wait(std::unique_lock<std::mutex>& lock, int rank, const bool& over) {
  ++at(rank).waits;
  const bool came = changed_.wait_for(lock, patience(), [&] { return over || at(rank).aborted; });
  --at(rank).waits;
  changed_.notify_all();
  return came;
}

void Clique::collective(int rank, std::uint64_t number, const Operation& operation) {
  std::unique_lock lock(mutex_);
  if (at(rank).aborted) return;
  auto& place = meetings_[number];
  if (!place) {
    place = std::make_shared<Meeting>();
    place->ranks.resize(ranks_.size());
    place->here.resize(ranks_.size());
    place->missing = size();
  }
  const auto meeting = place;
  if (meeting->over) return;  // somebody came with another operation, or was not waited for any longer
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    if (!meeting->here[other] || same(meeting->ranks[other], operation)) continue;
    fail(operation.name, "operation " + std::to_string(number) + " of rank " + std::to_string(rank) + " is " +
                             operation.text() + ", that of rank " + std::to_string(other) + " is " +
                             meeting->ranks[other].text());
    meeting->over = true;
    changed_.notify_all();
    return;
  }
  meeting->ranks[static_cast<std::size_t>(rank)] = operation;
  meeting->here[static_cast<std::size_t>(rank)] = true;
  if (--meeting->missing == 0) {
    perform(meeting->ranks);
    meeting->over = true;
    meetings_.erase(number);
    changed_.notify_all();
    return;
  }
  if (wait(lock, rank, meeting->over)) return;
  fail(operation.name, "operation " + std::to_string(number) + " of rank " + std::to_string(rank) + ", " +
                           operation.text() + ", waits for rank " + who_is_missing(*meeting) + ", which does not come");
  meeting->over = true;
  changed_.notify_all();
}

void Clique::point_to_point(int rank, const std::vector<Operation>& operations) {
  std::unique_lock lock(mutex_);
  if (at(rank).aborted) return;
  std::vector<std::shared_ptr<Post>> mine;
  for (const auto& operation : operations) {
    const bool sends = std::strcmp(operation.name, "ncclSend") == 0;
    const auto pair = sends ? std::pair(rank, operation.other) : std::pair(operation.other, rank);
    auto& there = (sends ? receives_ : sends_)[pair];
    if (there.empty()) {
      mine.push_back(std::make_shared<Post>(Post{operation}));
      (sends ? sends_ : receives_)[pair].push_back(mine.back());
      continue;
    }
    const auto partner = there.front();
    there.erase(there.begin());
    if (partner->operation.count != operation.count || partner->operation.type != operation.type) {
      fail(operation.name, operation.text() + " of rank " + std::to_string(rank) + " meets " +
                               partner->operation.text() + " of rank " + std::to_string(operation.other));
    } else {
      const auto& from = sends ? operation : partner->operation;
      const auto& to = sends ? partner->operation : operation;
      std::memcpy(to.recv, from.send, operation.count * size_of(operation.type));
    }
    partner->done = true;
    changed_.notify_all();
  }
  for (const auto& post : mine) {
    if (wait(lock, rank, post->done)) continue;
    fail(post->operation.name, post->operation.text() + " of rank " + std::to_string(rank) + " waits for rank " +
                                   std::to_string(post->operation.other) + ", which does not come");
    post->done = true;
  }
  // What nobody came for is in nobody's way later.
  for (auto* const posts : {&sends_, &receives_}) {
    for (auto& [pair, waiting] : *posts) {
      std::erase_if(waiting, [&](const auto& post) {
        for (const auto& own : mine) {
          if (own == post) return true;
        }
        return false;
      });
    }
  }
}

void Clique::abort(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks) at(rank).aborted = true;
  changed_.notify_all();
}

void Clique::await_others(int rank) {
  std::unique_lock lock(mutex_);
  const auto waiting = [this] {
    int found = -1;
    for (int other = 0; other < size(); ++other) {
      if (at(other).waits > 0 && !at(other).aborted) found = other;
    }
    return found;
  };
  if (changed_.wait_for(lock, patience(), [&] { return waiting() < 0; })) return;
  fail("ncclCommAbort", "rank " + std::to_string(rank) + " is aborted outside of a group, and waits for rank " +
                            std::to_string(waiting()) + ", which is not");
}

}  // namespace stand_in_nccl
