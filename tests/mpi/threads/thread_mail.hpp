// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/group/rank_mail.hpp>
#include <fanout/mpi/ranks_of_models.hpp>

// Ranks that are threads of one process. Each has a mail, a group and models of its own, as a process of MPI has. So
// what ranks say to each other is tested without MPI.

namespace fanout_test {

/// The messages of all threads. As with MPI, a small one has been sent at once, and a large one when it is received.
class PostOffice {
  using Blocks = fanout::detail::MessageBlocks;

 public:
  explicit PostOffice(std::size_t ranks) : met(static_cast<std::ptrdiff_t>(ranks)), failed(ranks) {}

  struct Place {
    std::size_t from;
    std::size_t to;
    int tag;
    bool is_timed;
    auto operator<=>(const Place&) const = default;
  };

  std::uint64_t send(const Blocks& blocks, const Place& place) {
    const std::lock_guard<std::mutex> alone(mutex_);
    auto message = std::make_shared<Message>(Message{.blocks = blocks, .place = place, .is_send = true});
    if (bytes_of(blocks) <= eager) keep_copy(*message);
    return add(std::move(message));
  }
  std::uint64_t receive(const Blocks& blocks, const Place& place) {
    const std::lock_guard<std::mutex> alone(mutex_);
    return add(std::make_shared<Message>(Message{.blocks = blocks, .place = place}));
  }
  bool test(std::uint64_t ticket) {
    const std::lock_guard<std::mutex> alone(mutex_);
    const auto found = open_.find(ticket);
    if (!found->second->is_done) return false;
    open_.erase(found);
    return true;
  }
  void give_up(std::uint64_t ticket) {
    const std::lock_guard<std::mutex> alone(mutex_);
    const auto found = open_.find(ticket);
    Message& message = *found->second;
    if (message.is_send && !message.is_done) keep_copy(message);
    if (!message.is_send) std::erase(queues_[message.place].receives, found->second);
    open_.erase(found);
  }

  std::barrier<> met;
  std::vector<char> failed;

 private:
  static constexpr std::size_t eager = 4096;

  struct Message {
    Blocks blocks;
    Place place;
    bool is_send = false;
    bool is_done = false;
    std::vector<std::byte> copy = {};
  };
  struct Queue {
    std::deque<std::shared_ptr<Message>> sends;
    std::deque<std::shared_ptr<Message>> receives;
  };

  static std::size_t bytes_of(const Blocks& blocks) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < blocks.count(); ++i) bytes += static_cast<std::size_t>(blocks.sizes()[i]);
    return bytes;
  }
  static std::vector<std::byte> read(const Blocks& blocks) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < blocks.count(); ++i) {
      const auto* const first = reinterpret_cast<const std::byte*>(blocks.addresses()[i]);
      bytes.insert(bytes.end(), first, first + blocks.sizes()[i]);
    }
    return bytes;
  }
  static void keep_copy(Message& send) {
    send.copy = read(send.blocks);
    send.blocks = {};
    send.is_done = true;
  }
  static void copy(const Message& send, const Blocks& to) {
    const std::vector<std::byte> bytes = send.is_done ? send.copy : read(send.blocks);
    std::size_t at = 0;
    for (std::size_t i = 0; i < to.count() && at < bytes.size(); ++i) {
      const std::size_t count = std::min(bytes.size() - at, static_cast<std::size_t>(to.sizes()[i]));
      std::memcpy(reinterpret_cast<void*>(to.addresses()[i]), bytes.data() + at, count);
      at += count;
    }
    if (at != bytes.size()) std::terminate();  // no room: MPI would refuse it
  }

  std::uint64_t add(std::shared_ptr<Message> message) {
    Queue& queue = queues_[message->place];
    (message->is_send ? queue.sends : queue.receives).push_back(message);
    while (!queue.sends.empty() && !queue.receives.empty()) {
      copy(*queue.sends.front(), queue.receives.front()->blocks);
      queue.sends.front()->is_done = queue.receives.front()->is_done = true;
      queue.sends.pop_front();
      queue.receives.pop_front();
    }
    open_.emplace(++last_, std::move(message));
    return last_;
  }

  std::mutex mutex_;
  std::map<Place, Queue> queues_;
  std::map<std::uint64_t, std::shared_ptr<Message>> open_;
  std::uint64_t last_ = 0;
};

/// The threads of a test. Each is a rank.
struct ThreadWorld {
  explicit ThreadWorld(std::size_t ranks) : size(ranks), barrier(static_cast<std::ptrdiff_t>(ranks)), words(ranks) {}

  const std::size_t size;
  std::barrier<> barrier;
  std::shared_ptr<PostOffice> office;  // of the latest group
  std::vector<int> words;
};

/// The rank that this thread is.
struct ThisRank {
  ThreadWorld* world = nullptr;
  std::size_t rank = 0;
};
inline thread_local ThisRank this_rank;

/// Waits until all ranks have called it.
inline void meet() { this_rank.world->barrier.arrive_and_wait(); }

/// True if it is true on all ranks.
inline bool is_true_on_all(bool here) {
  std::vector<int>& words = this_rank.world->words;
  words[this_rank.rank] = here ? 1 : 0;
  meet();
  const bool on_all = std::count(words.begin(), words.end(), 1) == static_cast<std::ptrdiff_t>(words.size());
  meet();
  return on_all;
}

class ThreadMail final : public fanout::detail::RankMail {
 public:
  /// All threads make one together.
  ThreadMail() {
    ThreadWorld& world = *this_rank.world;
    rank_ = this_rank.rank;
    meet();
    if (rank_ == 0) world.office = std::make_shared<PostOffice>(world.size);
    meet();
    office_ = world.office;
    hosts_.resize(world.size);
    for (Host& each : hosts_) std::string_view("node").copy(each.name, sizeof each.name);
  }

  Ticket send(const fanout::detail::MessageBlocks& blocks, const Address& to) const override {
    if (to.rank == lost_to) return {};
    return {.number = office_->send(blocks, {rank_, to.rank, to.tag, to.channel == Channel::deadlines}),
            .is_open = true};
  }
  Ticket receive(const fanout::detail::MessageBlocks& blocks, const Address& from) const override {
    return {.number = office_->receive(blocks, {from.rank, rank_, from.tag, from.channel == Channel::deadlines}),
            .is_open = true};
  }
  bool test(Ticket& ticket) const override {
    if (ticket.is_open) ticket.is_open = !office_->test(ticket.number);
    return !ticket.is_open;
  }
  void give_up(Ticket& ticket, bool /*receives*/) const noexcept override {
    if (ticket.is_open) office_->give_up(ticket.number);
    ticket.is_open = false;
  }
  fanout::detail::FairMutex& mutex() const noexcept override { return mutex_; }

  void all_have_memory(const std::exception_ptr& own) const override {
    office_->failed[rank_] = own == nullptr ? 0 : 1;
    office_->met.arrive_and_wait();
    const bool any = std::count(office_->failed.begin(), office_->failed.end(), 1) != 0;
    office_->met.arrive_and_wait();
    if (own != nullptr) std::rethrow_exception(own);
    if (any) throw fanout::Error("a rank had no memory");
  }

  static constexpr std::size_t nobody = ~std::size_t{0};
  mutable std::size_t lost_to = nobody;  ///< messages to this rank get lost

 private:
  std::shared_ptr<PostOffice> office_;
  mutable fanout::detail::FairMutex mutex_;
};

/// A group of all threads, and what models need of it: `Options{.ranks = ranks}`. All threads make one together.
class ThreadGroup {
 public:
  ThreadGroup() = default;
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  std::size_t rank() const noexcept { return mail.rank(); }
  std::size_t size() const noexcept { return mail.size(); }
  operator const fanout::backend::ProcessRanks*() const noexcept { return &models; }  // NOLINT

  const ThreadMail mail{};
  const fanout::detail::RankGroup group{mail};
  const fanout::detail::RanksOfModels models{group, {}, {}};
};

/// Calls `f()` on as many threads, each of which is a rank.
template <class F>
void on_ranks(std::size_t ranks, const F& f) {
  ThreadWorld world(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      this_rank = {&world, rank};
      f();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace fanout_test
