// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/timeout.hpp>
#include <fanout/collective/host_rendezvous.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/collective/rank_elements.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout_test {

/// What the threads of ThreadRanks share.
struct ThreadMeeting {
  explicit ThreadMeeting(std::size_t ranks)
      : barrier(static_cast<std::ptrdiff_t>(ranks)),
        steps(ranks),
        random_calls(ranks),
        texts(ranks),
        values(ranks),
        timed(ranks) {}

  /// Waits for all threads until a deadline. Throws Timeout on all of them if one is late.
  void arrive(std::size_t rank, const fanout::backend::RankedStep& step) {
    std::unique_lock<std::mutex> lock(mutex);
    Arrivals& now = arrivals[timed[rank]++];
    now.ranks.push_back(rank);
    if (now.ranks.size() == steps.size()) arrived.notify_all();
    while (now.ranks.size() != steps.size() && now.missing.size() == 0) {
      arrived.wait_for(lock, std::chrono::milliseconds(1));
      if (fanout::detail::Clock::now() < step.deadline.at || now.ranks.size() == steps.size()) continue;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (std::count(now.ranks.begin(), now.ranks.end(), i) == 0) now.missing.push_back(i);
      }
    }
    if (now.missing.size() != 0) {
      throw fanout::Timeout(
          "late for " + fanout::Timeout::to_text(step.deadline.patience) + ": " + std::string(step.name), now.missing);
    }
  }

  struct Arrivals {
    std::vector<std::size_t> ranks;
    fanout::detail::SmallVector<std::size_t> missing;
  };

  std::barrier<> barrier;
  std::vector<fanout::backend::RankedStep> steps;
  std::vector<std::uint32_t> random_calls;
  std::vector<std::string> texts;  // of failures: an exception stays with its thread, as ThreadSanitizer asks
  std::vector<std::vector<fanout::backend::RankedValue>> values;
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::size_t> timed;  // steps with a deadline that each rank has made
  std::map<std::size_t, Arrivals> arrivals;
  std::shared_ptr<fanout::backend::HostRendezvous> rendezvous;  // of the latest call whose shards may meet
};

/// The ProcessRendezvous of threads that stand for processes. All of them share one HostRendezvous.
class ThreadRendezvous final : public fanout::backend::ProcessRendezvous {
 public:
  ThreadRendezvous(ThreadMeeting& meeting, std::shared_ptr<fanout::backend::HostRendezvous> shared)
      : meeting_(meeting), shared_(std::move(shared)) {}
  ~ThreadRendezvous() override { meeting_.barrier.arrive_and_wait(); }

  void meet(std::size_t rank, fanout::backend::Collective* calls, std::size_t count, const Help& help) override {
    shared_->meet(rank, calls, count, 1'000'000, [&help]() noexcept { help.start(help.of); });
  }
  void leave(std::size_t rank, const std::exception_ptr& why) noexcept override { shared_->leave(rank, why); }
  void break_off(const char* why) noexcept override { shared_->break_off(why); }

 private:
  ThreadMeeting& meeting_;
  const std::shared_ptr<fanout::backend::HostRendezvous> shared_;
};

/// One of several threads that stand for processes which call a model together.
class ThreadRanks final : public fanout::backend::ProcessRanks {
 public:
  ThreadRanks(ThreadMeeting& meeting, std::size_t rank) : meeting_(meeting), rank_(rank) {}

  std::size_t rank() const noexcept override { return rank_; }
  std::size_t size() const noexcept override { return meeting_.steps.size(); }

  fanout::detail::BatchPlace begin(const fanout::backend::RankedStep& step,
                                   fanout::backend::ProcessRendezvous** rendezvous) const override {
    fanout::detail::BatchPlace place{};
    std::uint32_t random_call = 0;
    meeting_.random_calls[rank_] = *step.random_call;
    meet(step, [&] {
      random_call = meeting_.random_calls[0];
      for (std::size_t i = 0; i < size(); ++i) {
        if (i == rank_) continue;
        place.other_rows += meeting_.steps[i].rows;
        place.other_shards += meeting_.steps[i].shards;
        if (i < rank_) place.first_row += meeting_.steps[i].rows;
        if (i < rank_) place.first_shard += meeting_.steps[i].shards;
      }
    });
    *step.random_call = random_call;
    if (rendezvous != nullptr) {
      if (rank_ == 0) {
        const std::size_t shards = step.shards + place.other_shards;
        meeting_.rendezvous = std::make_shared<fanout::backend::HostRendezvous>(shards);
      }
      meeting_.barrier.arrive_and_wait();
      *rendezvous = new ThreadRendezvous(meeting_, meeting_.rendezvous);
      meeting_.barrier.arrive_and_wait();
    }
    return place;
  }

  void combine(const fanout::backend::RankedStep& step) const override {
    Collected own;
    if (step.failure == nullptr && step.visit != nullptr) step.visit(step.of, own);
    meeting_.values[rank_] = own.values;
    std::vector<std::vector<std::byte>> combined;
    meet(step, [&] {
      for (std::size_t i = 0; i < own.values.size(); ++i) combined.push_back(combine(i));
    });
    for (std::size_t i = 0; i < combined.size(); ++i) {
      std::memcpy(own.values[i].data, combined[i].data(), combined[i].size());
    }
  }

 private:
  struct Collected final : fanout::backend::RankedValues {
    void add(const fanout::backend::RankedValue& value, const fanout::LeafPath& path) override {
      if (value.fold->element_size == 0) throw fanout::Error(to_string(path) + ": " + value.fold->name());
      values.push_back(value);
    }
    std::vector<fanout::backend::RankedValue> values;
  };

  /// Calls `look` when the steps of all threads are there, and returns when all have looked.
  template <class Look>
  void meet(const fanout::backend::RankedStep& step, const Look& look) const {
    if (step.deadline.exists()) {
      try {
        meeting_.arrive(rank_, step);
      } catch (...) {
        if (step.failure != nullptr) std::rethrow_exception(step.failure);
        throw;
      }
    }
    meeting_.steps[rank_] = step;
    meeting_.texts[rank_] = text_of(step.failure);
    meeting_.barrier.arrive_and_wait();
    std::string failed;
    bool same = true;
    for (std::size_t i = 0; i < size(); ++i) {
      failed += meeting_.texts[i];
      same = same && meeting_.steps[i].hash == step.hash;
    }
    if (failed.empty() && same) look();
    meeting_.barrier.arrive_and_wait();
    if (step.failure != nullptr) std::rethrow_exception(step.failure);
    if (!failed.empty()) throw fanout::Error(failed);
    if (!same) throw fanout::StructureMismatch("other steps");
  }

  static std::string text_of(const std::exception_ptr& failure) {
    if (failure == nullptr) return {};
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  std::vector<std::byte> combine(std::size_t i) const {
    const fanout::backend::RankFold& fold = *meeting_.values[0][i].fold;
    std::size_t rows = 0;
    for (const auto& step : meeting_.steps) rows += step.rows;
    const std::size_t bytes = meeting_.values[0][i].count * fold.element_size;
    std::vector<const void*> from;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      if (fold.counts_empty || rows == 0 || meeting_.steps[rank].rows != 0) {
        from.push_back(meeting_.values[rank][i].data);
      }
    }
    std::vector<std::byte> to(bytes);
    fold.combine(to.data(), fanout::backend::RankElements::in(from), meeting_.values[0][i].count);
    return to;
  }

  ThreadMeeting& meeting_;
  std::size_t rank_;
};

/// Calls `f(ranks)` on as many threads as there are ranks.
template <class F>
void on_thread_ranks(std::size_t ranks, const F& f) {
  ThreadMeeting meeting(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { f(ThreadRanks(meeting, rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace fanout_test
