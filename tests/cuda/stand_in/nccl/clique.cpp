// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "clique.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

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

/// NCCL may notice that another process has aborted, or may wait for it forever.
bool notices_aborts() {
  static const bool value = std::getenv("FANOUT_STAND_IN_NO_REMOTE_ERRORS") == nullptr;
  return value;
}

bool same(const Operation& one, const Operation& other) {
  return std::strcmp(one.name, other.name) == 0 && one.count == other.count && one.type == other.type &&
         one.reduction == other.reduction && one.other == other.other;
}

/// The rank's operation, and what it sends.
std::string note_of(const Operation& operation, int ranks, int rank) {
  std::string text = operation.text();
  text += '\0';
  const std::size_t bytes = operation.send_count(ranks, rank) * size_of(operation.type);
  if (bytes != 0) text.append(static_cast<const char*>(operation.send), bytes);
  return text;
}

}  // namespace

Clique::Clique(unsigned number, int ranks, std::unique_ptr<Board> board) : number_(number), board_(std::move(board)) {
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
  if (board_ != nullptr) return collective_on_board(rank, number, operation);
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
  if (board_ != nullptr) return point_to_point_on_board(rank, operations);
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

bool Clique::await(int rank, const Operation& operation, const std::string& note, int other, bool there) {
  const auto until = std::chrono::steady_clock::now() + patience();
  bool aborted = false;
  bool late = false;
  const auto given_up = [&] {
    const std::lock_guard lock(mutex_);
    if (notices_aborts() && board_->has("aborted")) at(rank).error.store(ncclRemoteError, std::memory_order_relaxed);
    aborted = at(rank).aborted;
    late = std::chrono::steady_clock::now() > until;
    return aborted || late;
  };
  {
    const std::lock_guard lock(mutex_);
    ++at(rank).waits;
  }
  bool found = there ? board_->await(note, given_up) : !board_->has(note);
  while (!there && !found && !given_up()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found = !board_->has(note);
  }
  {
    const std::lock_guard lock(mutex_);
    --at(rank).waits;
    changed_.notify_all();
  }
  if (found && !aborted) return true;
  if (late) {
    fail(operation.name, operation.text() + " of rank " + std::to_string(rank) + " waits for rank " +
                             std::to_string(other) + ", which does not come");
  }
  return false;
}

void Clique::collective_on_board(int rank, std::uint64_t number, const Operation& operation) {
  const auto note = [](std::uint64_t of, int from) { return std::to_string(of) + "." + std::to_string(from); };
  board_->post(note(number, rank), note_of(operation, size(), rank));
  const std::string own = operation.text();
  std::vector<std::string> notes;
  for (int other = 0; other < size(); ++other) {
    if (!await(rank, operation, note(number, other), other, true)) return;
    notes.push_back(board_->read(note(number, other)));
    const std::string theirs = notes.back().c_str();
    if (theirs == own) continue;
    return fail(operation.name, "operation " + std::to_string(number) + " of rank " + std::to_string(rank) + " is " +
                                    own + ", that of rank " + std::to_string(other) + " is " + theirs);
  }
  // All have come to this one, so nobody reads the one before.
  board_->remove(note(number - 1, rank));
  std::vector<Operation> all(notes.size(), operation);
  std::vector<std::vector<char>> others(notes.size());
  for (int other = 0; other < size(); ++other) {
    const auto i = static_cast<std::size_t>(other);
    all[i].send = notes[i].data() + own.size() + 1;
    if (other == rank) continue;
    others[i].resize(operation.recv_count(size(), other) * size_of(operation.type));
    all[i].recv = others[i].data();
  }
  perform(all);
}

void Clique::point_to_point_on_board(int rank, const std::vector<Operation>& operations) {
  std::vector<std::pair<std::string, int>> sent;
  const auto next = [this](auto& counts, int from, int to) {
    const std::lock_guard lock(mutex_);
    return "p." + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(counts[{from, to}]++);
  };
  for (const auto& operation : operations) {
    if (std::strcmp(operation.name, "ncclSend") != 0) continue;
    sent.emplace_back(next(sent_, rank, operation.other), operation.other);
    board_->post(sent.back().first, note_of(operation, size(), rank));
  }
  for (const auto& operation : operations) {
    if (std::strcmp(operation.name, "ncclRecv") != 0) continue;
    const std::string note = next(received_, operation.other, rank);
    if (!await(rank, operation, note, operation.other, true)) return;
    const std::string text = board_->read(note);
    board_->remove(note);
    const std::string theirs = text.c_str();
    Operation wanted = operation;
    wanted.name = "ncclSend";
    if (theirs != wanted.text()) {
      return fail(operation.name, operation.text() + " of rank " + std::to_string(rank) + " meets " + theirs +
                                      " of rank " + std::to_string(operation.other));
    }
    std::memcpy(operation.recv, text.data() + theirs.size() + 1, operation.count * size_of(operation.type));
  }
  for (const auto& [note, other] : sent) {
    if (!await(rank, operations[0], note, other, false)) return;
  }
}

void Clique::abort(const std::vector<int>& ranks) {
  if (board_ != nullptr) board_->post("aborted", "");
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
