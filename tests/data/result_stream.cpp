// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/data/result_stream.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/data.hpp>

#include "support/message_of.hpp"

using fanout::Loader;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

/// Pairs of i and 10 * i.
struct TenTimes {
  std::size_t size() const { return 10; }
  std::pair<int, int> operator[](std::size_t i) const {
    const int number = static_cast<int>(i);
    return {number, 10 * number};
  }
};

Tensor<int, 1> sum_of(View<const int, 1> x, View<const int, 1> y) {
  Tensor<int, 1> sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] = x[i] + y[i];
  return sum;
}

template <class Stream>
std::vector<int> results_of(Stream&& stream) {
  std::vector<int> results;
  for (auto&& result : stream) results.insert(results.end(), result.begin(), result.end());
  return results;
}

}  // namespace

TEST_CASE("a stream gives the results for the batches in their order") {
  const ParallelModel model{&sum_of, fanout::host_devices(2)};
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const Loader loader{TenTimes(), {.batch = 4, .workers = workers}};
    CHECK(results_of(model.stream(loader.epoch(0))) == std::vector{0, 11, 22, 33, 44, 55, 66, 77, 88, 99});
    CHECK(loader.position().epoch == 1);
    auto epoch = loader.epoch(1);
    static_cast<void>(epoch.next());
    CHECK(results_of(model.stream(epoch)) == std::vector{44, 55, 66, 77, 88, 99});
    CHECK(results_of(model.stream(epoch)).empty());
  }
  const Loader empty{std::vector<std::pair<int, int>>(), {.batch = 4}};
  auto nothing = model.stream(empty.epoch(0));
  CHECK(nothing.begin() == nothing.end());
  CHECK_THROWS_AS(static_cast<void>(*nothing.begin()), fanout::InvalidArgument);
}

TEST_CASE("a batch that is no tuple is one argument") {
  const ParallelModel model{[](View<const int, 1> x) { return fanout::psum(static_cast<int>(x.size()) + x[0]); },
                            fanout::host_devices(1)};
  std::vector<int> results;
  for (const int result : model.stream(Loader{std::vector{5, 6, 7}, {.batch = 2}}.epoch(0))) results.push_back(result);
  CHECK(results == std::vector{7, 8});
}

TEST_CASE("the next batch is brought while this one runs") {
  std::atomic<int> loaded{0};
  std::atomic<bool> waited_in_vain{false};
  const Loader loader{4,
                      [&loaded](std::span<const std::size_t> samples) {
                        ++loaded;
                        return static_cast<int>(samples[0]);
                      },
                      {.batch = 1}};
  const ParallelModel model{[&](int batch) {
                              const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                              while (batch < 3 && !waited_in_vain && loaded.load() < batch + 2) {
                                if (std::chrono::steady_clock::now() > until) {
                                  waited_in_vain = true;
                                  break;
                                }
                                std::this_thread::yield();
                              }
                              return fanout::psum(batch);
                            },
                            fanout::host_devices(1)};
  std::vector<int> results;
  for (const int result : model.stream(loader.epoch(0))) {
    results.push_back(result);
    CHECK(loaded.load() <= static_cast<int>(results.size()) + 1);
  }
  CHECK(results == std::vector{0, 1, 2, 3});
  CHECK(!waited_in_vain.load());
}

TEST_CASE("exceptions of batches and of calls come in the place of their results, and the stream goes on") {
  const ParallelModel model{[](int batch) {
                              if (batch == 2) throw std::runtime_error("call " + std::to_string(batch));
                              return fanout::psum(batch);
                            },
                            fanout::host_devices(1)};
  const Loader loader{6,
                      [](std::span<const std::size_t> samples) {
                        if (samples[0] == 1 || samples[0] == 5) throw std::out_of_range("no such batch");
                        return static_cast<int>(samples[0]);
                      },
                      {.batch = 1, .workers = 1}};
  auto stream = model.stream(loader.epoch(0));
  std::vector<std::string> events;
  for (bool over = false; !over;) {
    try {
      for (const int result : stream) events.push_back(std::to_string(result));
      over = true;
    } catch (const fanout::LoadError& error) {
      events.push_back("batch " + std::to_string(error.place().batch));
    } catch (const fanout::ReplicaError& error) {
      events.emplace_back(error.get_if<std::runtime_error>()->what());
    }
  }
  CHECK(events == std::vector<std::string>{"0", "batch 1", "call 2", "3", "4", "batch 5"});
}

TEST_CASE("a stream that is left early waits for the call that runs") {
  std::atomic<int> running{0};
  std::atomic<int> calls{0};
  const ParallelModel model{[&](int batch) {
                              ++running;
                              ++calls;
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                              --running;
                              return fanout::psum(batch);
                            },
                            fanout::host_devices(1)};
  const Loader loader{100, [](std::span<const std::size_t>) { return 1; }, {.batch = 1, .workers = 2}};
  for (auto&& result : model.stream(loader.epoch(0))) {
    CHECK(result == 1);
    break;
  }
  CHECK(running.load() == 0);
  CHECK(calls.load() <= 2);
}
