// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench_loader [ROUNDS]: what a Loader adds to a loop, and how much of a slow source it hides. Contenders take turns in
// one process. Each line has the median over the rounds, and the quartiles.
//
// - Overhead: batches of no cost, of 1 row. A loop by hand calls the function itself. A loader without workers does so,
//   too. With a worker, the loop computes for about 20 us a batch, so that the next one is ready when it asks. There,
//   the loop by hand has a thread and a bounded queue. What is added to a batch is the difference to the loop by hand
//   of the same round, in processor time of the loop's thread. So other programs disturb it little.
// - Hidden: a source that sleeps for 2 ms a batch, and a loop that computes for 2 ms and a half. With the source
//   hidden, the loop takes as long as it computes. `hidden` is the part of the source's time that does not show.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/data.hpp>
#include <harness/samples.hpp>
#include <harness/ticks.hpp>

namespace {

struct Contender {
  std::string name;
  std::function<void()> loop;
  std::vector<double> seconds = {};
};

/// Processor time of this thread.
std::int64_t nanoseconds_of_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void measure(std::vector<Contender>& contenders, int rounds, std::int64_t (*clock)()) {
  for (int round = -1; round < rounds; ++round) {
    for (Contender& each : contenders) {
      const std::int64_t begin = clock();
      each.loop();
      if (round >= 0) each.seconds.push_back(1e-9 * static_cast<double>(clock() - begin));
    }
  }
}

std::size_t first_of(std::span<const std::size_t> samples) { return samples[0]; }

void use(std::size_t value) { asm volatile("" : : "g"(value) : "memory"); }

void work(std::size_t multiplications) {
  std::uint64_t value = 1;
  for (std::size_t i = 0; i < multiplications; ++i) {
    value *= 3;
    asm volatile("" : "+r"(value));
  }
}

/// What a user would write to load `count` batches ahead: a thread, and a queue of at most `ahead` batches.
class ByHand {
 public:
  ByHand(std::size_t count, std::size_t ahead)
      : thread_([this, count, ahead] {
          for (std::size_t i = 0; i < count; ++i) {
            const std::size_t samples[] = {i};
            const std::size_t batch = first_of(samples);
            std::unique_lock lock(mutex_);
            room_.wait(lock, [&] { return queue_.size() < ahead; });
            queue_.push_back(batch);
            ready_.notify_one();
          }
        }) {}
  ~ByHand() { thread_.join(); }

  std::size_t next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return !queue_.empty(); });
    const std::size_t batch = queue_.front();
    queue_.pop_front();
    lock.unlock();
    room_.notify_one();
    return batch;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::condition_variable room_;
  std::deque<std::size_t> queue_;
  std::thread thread_;
};

/// Loops over `batches` batches, with so much to compute for each. `ahead`: of the loop by hand; 0: it has no thread.
void overhead(int rounds, std::size_t batches, std::size_t multiplications, std::size_t ahead,
              const std::vector<std::pair<const char*, fanout::LoaderOptions>>& loaders) {
  std::vector<Contender> contenders{{"a loop by hand", [=] {
                                       if (ahead != 0) {
                                         ByHand queue(batches, ahead);
                                         for (std::size_t i = 0; i < batches; ++i) {
                                           use(queue.next());
                                           work(multiplications);
                                         }
                                         return;
                                       }
                                       for (std::size_t i = 0; i < batches; ++i) {
                                         const std::size_t samples[] = {i};
                                         use(first_of(samples));
                                         work(multiplications);
                                       }
                                     }}};
  for (const auto& [name, options] : loaders) {
    contenders.push_back({name, [multiplications, loader = fanout::Loader{batches, &first_of, options}] {
                            for (const std::size_t batch : loader.epoch(0)) {
                              use(batch);
                              work(multiplications);
                            }
                          }});
  }
  measure(contenders, rounds, &nanoseconds_of_thread);
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    std::vector<double> added;
    for (std::size_t round = 0; round < contenders[i].seconds.size(); ++round) {
      const double difference = contenders[i].seconds[round] - contenders[0].seconds[round];
      added.push_back(1e9 * difference / static_cast<double>(batches));
    }
    benchmarks::print_quartiles(contenders[i].name, added, "ns");
  }
}

void hidden(int rounds) {
  constexpr std::size_t batches = 100;
  constexpr std::chrono::microseconds of_source(2'000);
  constexpr std::chrono::microseconds of_loop(2'500);
  const auto compute = [=] {
    const std::int64_t end = benchmarks::nanoseconds() + std::chrono::nanoseconds(of_loop).count();
    while (benchmarks::nanoseconds() < end) {
    }
  };
  const auto source = [=](std::span<const std::size_t> samples) {
    std::this_thread::sleep_for(of_source);
    return samples[0];
  };
  const auto with = [&](const fanout::LoaderOptions& options) {
    return [compute, loader = fanout::Loader{batches, source, options}] {
      for (const std::size_t batch : loader.epoch(0)) {
        use(batch);
        compute();
      }
    };
  };
  std::vector<Contender> contenders{
      {"the loop without a source",
       [&] {
         for (std::size_t i = 0; i < batches; ++i) compute();
       }},
      {"Loader", with({})},
      {"Loader, 1 worker, prefetch 2", with({.workers = 1, .prefetch = 2})},
      {"Loader, 2 workers, prefetch 4", with({.workers = 2, .prefetch = 4})},
  };
  measure(contenders, rounds, &benchmarks::nanoseconds);
  std::printf("hidden of a source of 2 ms a batch, in a loop of 2.5 ms\n");
  const double of_sources = 1e-6 * static_cast<double>(of_source.count()) * batches;
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    std::vector<double> parts;
    for (std::size_t round = 0; round < contenders[i].seconds.size(); ++round) {
      parts.push_back(100 * (1 - (contenders[i].seconds[round] - contenders[0].seconds[round]) / of_sources));
    }
    benchmarks::print_quartiles(contenders[i].name, parts, "% ");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  std::printf("added to a batch\n");
  overhead(rounds, 100'000, 0, 0, {{"Loader", {}}, {"Loader, shuffled", {.shuffle = fanout::Shuffle{.seed = 1}}}});
  overhead(rounds, 5'000, 20'000, 4, {{"Loader, 1 worker, prefetch 4", {.workers = 1, .prefetch = 4}}});
  overhead(rounds, 5'000, 20'000, 64, {{"Loader, 1 worker, prefetch 64", {.workers = 1, .prefetch = 64}}});
  hidden(rounds);
}
