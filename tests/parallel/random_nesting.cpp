// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
//
// Random patterns of models that call models: whatever they look like, whatever the devices and the split, calls end,
// and give what one thread gives. Rows come back once each, in their order. tests/random_programs/ has random types.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/plan/dealt_split.hpp>
#include <fanout/worker/registry.hpp>

#include "random_programs/split_of.hpp"

using fanout::HostDevice;
using fanout::ParallelModel;
using fanout::Pending;

namespace {

constexpr int patterns = 1000;

using Hosts = fanout::DeviceSet<HostDevice>;
using Rows = std::span<const int>;
using Number = std::uint64_t;  // wraps around, so that sums do not depend on their order
/// The number of all models that a call came to, and the rows that the first one was handed.
using Answer = std::tuple<Number, std::vector<int>>;
using Result = Pending<Answer>;

/// Ends the process with the pattern's seed if a pattern takes a minute.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    next(0);
    thread_.join();
  }
  /// A pattern begins; 0: there is none any more.
  void next(unsigned seed) {
    {
      const std::lock_guard lock(mutex_);
      seed_ = seed;
      ended_ = seed == 0;
    }
    changed_.notify_all();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      const unsigned seed = seed_;
      if (changed_.wait_for(lock, std::chrono::seconds(60), [&] { return seed_ != seed || ended_; })) continue;
      std::fprintf(stderr, "\nthe pattern with the seed %u of random_nesting.cpp has not ended after 60 s\n", seed);
      std::abort();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned seed_ = 1;
  bool ended_ = false;
  std::thread thread_;
};

/// How a forward calls another model.
struct Edge {
  std::size_t to;
  enum { waits, async, async_not_taken } how;
};

struct Pattern;

/// A model of a pattern. Adds what it makes of its rows to what the models make of them that it calls.
struct Node {
  const Pattern* pattern;
  std::size_t index;
  long version = 0;  // the two are the same except in the midst of an update
  long same_version = 0;

  Number run(Rows rows) const;
};
struct ConstNode : Node {
  auto forward(Rows rows) const { return std::tuple(fanout::psum(run(rows)), std::vector(rows.begin(), rows.end())); }
};
struct ChangingNode : Node {
  int inside = 0;  // plain: the replica is one thread's at a time
  auto forward(Rows rows) {
    const bool alone = ++inside == 1;
    const Number number = run(rows);
    --inside;
    return std::tuple(fanout::psum(alone ? number : number + 1), std::vector(rows.begin(), rows.end()));
  }
};

/// Of the two kinds of models, one.
struct AnyModel {
  std::optional<ParallelModel<ConstNode, Hosts>> constant;
  std::optional<ParallelModel<ChangingNode, Hosts>> changing;

  template <class F>
  auto visit(const F& f) const {
    return constant ? f(*constant) : f(*changing);
  }
  void update() {
    const auto next = [](Node& node) {
      ++node.version;
      std::this_thread::yield();
      ++node.same_version;
    };
    if (constant) {
      constant->update(next);
    } else {
      changing->update(next);
    }
  }
};

Number mixed(Number x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  return x ^ (x >> 27);
}

/// Models that call one another, and the threads that call them.
struct Pattern {
  random_programs::Random random;
  std::array<std::vector<Edge>, 6> edges;  // of each model, to later ones and, for an error, to itself
  std::vector<AnyModel> models;

  explicit Pattern(unsigned seed) : random(seed), models(2 + below(5)) {
    for (std::size_t i = 0; i < models.size(); ++i) make_model(i);
  }

  std::size_t below(std::size_t n) { return random.below(n); }

  /// What a call returns, found by one thread.
  Number serial(std::size_t model, Rows rows) const {
    Number sum = own(model, rows);
    for (const Edge& edge : edges[model]) {
      if (edge.how != Edge::async_not_taken) sum += serial(edge.to, rows);
    }
    return sum;
  }
  static Number own(std::size_t model, Rows rows) {
    Number sum = 0;
    for (const int row : rows) sum += mixed(static_cast<Number>(row) * 8 + model);
    return sum;
  }

  /// Whether a call comes to a model that changes and calls itself.
  bool is_refused(std::size_t model) const {
    return std::any_of(edges[model].begin(), edges[model].end(), [&](const Edge& edge) {
      return edge.how != Edge::async_not_taken && (edge.to == model || is_refused(edge.to));
    });
  }

 private:
  /// Some of five host devices and of one without a thread, in any order.
  Hosts some_devices() {
    static const std::vector<HostDevice> all = [] {
      std::vector<HostDevice> devices = fanout::host_devices(5).of_kind<0>();
      devices.emplace_back(fanout::backend::registry().worker({.kind = "idle", .index = 0}, {}, false));
      return devices;
    }();
    std::vector<HostDevice> devices = all;
    std::shuffle(devices.begin(), devices.end(), random);
    devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(1 + below(5)), devices.end());
    return Hosts(std::move(devices));
  }

  void make_model(std::size_t i) {
    for (std::size_t to = i + 1; to < models.size() && edges[i].size() < 3; ++to) {
      if (below(5) < 2) edges[i].push_back({.to = to, .how = std::array{Edge::waits, Edge::async}[below(2)]});
      if (below(20) == 0) edges[i].push_back({.to = to, .how = Edge::async_not_taken});
    }
    std::shuffle(edges[i].begin(), edges[i].end(), random);
    fanout::Options options;
    const Hosts devices = some_devices();
    if (below(2) == 0) options.split = split_of(random_programs::drawn_sharing(random, devices.size()));
    if (below(8) == 0) options.split = fanout::DealtSplit{};
    if (below(4) == 0) options.deadline = std::chrono::hours(1);  // waits that could end before
    if (below(2) == 0) {
      models[i].constant.emplace(ConstNode{{this, i}}, devices, options);
    } else {
      models[i].changing.emplace(ChangingNode{{this, i}}, devices, options);
      if (below(12) == 0) edges[i].push_back({.to = i, .how = below(2) == 0 ? Edge::waits : Edge::async});
    }
  }
};

Number Node::run(Rows rows) const {
  Number sum = Pattern::own(index, rows) + (version == same_version ? 0 : 1);
  std::vector<Result> taken;
  std::vector<Result> not_taken;
  const auto add = [&](const Answer& answer) {
    sum += std::get<0>(answer) + (std::ranges::equal(std::get<1>(answer), rows) ? 0 : 1);
  };
  for (const Edge& edge : pattern->edges[index]) {
    pattern->models[edge.to].visit([&](const auto& model) {
      if (edge.how == Edge::waits) {
        add(model(rows));
      } else {
        (edge.how == Edge::async ? taken : not_taken).push_back(model.async(rows));
      }
    });
  }
  for (std::size_t i = taken.size(); i > 0; --i) add(taken[i - 1].get());
  return sum;
}

/// What one thread of a pattern does.
struct Caller {
  struct Call {
    std::size_t model;
    std::vector<int> rows;
    bool async;
  };
  std::vector<Call> calls;
  std::size_t updates = 0;
  std::vector<std::size_t> take_order;
  std::string wrong;

  Caller(Pattern& pattern, std::size_t most_updates) {
    for (std::size_t i = 1 + pattern.below(4); i > 0; --i) {
      std::vector<int> rows(pattern.below(4) == 0 ? pattern.below(2) : pattern.below(16));
      std::iota(rows.begin(), rows.end(), static_cast<int>(i));
      calls.push_back({pattern.below(pattern.models.size()), std::move(rows), pattern.below(3) > 0});
      take_order.push_back(take_order.size());
    }
    std::shuffle(take_order.begin(), take_order.end(), pattern.random);
    updates = most_updates == 0 ? 0 : pattern.below(most_updates);
  }

  void run(Pattern& pattern) {
    std::vector<std::optional<Result>> pending(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      pattern.models[calls[i].model].visit([&](const auto& model) {
        if (calls[i].async) {
          pending[i].emplace(model.async(calls[i].rows));
        } else {
          check(pattern, calls[i], [&] { return model(calls[i].rows); });
        }
      });
      if (i < updates) pattern.models[calls[(i + updates) % calls.size()].model].update();
    }
    for (const std::size_t i : take_order) {
      if (pending[i]) check(pattern, calls[i], [&] { return pending[i]->get(); });
    }
  }

  template <class F>
  void check(const Pattern& pattern, const Call& call, const F& result) {
    const bool refused = pattern.is_refused(call.model);
    const std::string name = "model " + std::to_string(call.model) + ": ";
    try {
      const auto& [number, rows] = result();
      if (number != pattern.serial(call.model, call.rows)) wrong += name + "another result than with one thread\n";
      if (rows != call.rows) wrong += name + "other rows than were handed in\n";
      if (refused) wrong += name + "a call of a model from inside itself was not refused\n";
    } catch (const fanout::Error& error) {
      const std::string text = error.what();
      if (!refused || text.find("from inside its own forward") == std::string::npos) wrong += name + text + "\n";
    }
  }
};

}  // namespace

TEST_CASE("random patterns of nested models called from several threads end with the results of one thread") {
  Watchdog watchdog;
  std::size_t calls = 0;
  std::size_t refused = 0;
  for (unsigned seed = 1; seed <= patterns; ++seed) {
    watchdog.next(seed);
    CAPTURE(seed);
    Pattern pattern(seed);
    std::vector<Caller> callers;
    const std::size_t most_updates = pattern.below(3) == 0 ? 4 : 0;
    for (std::size_t i = 1 + pattern.below(3); i > 0; --i) callers.emplace_back(pattern, most_updates);
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < callers.size(); ++i) threads.emplace_back([&, i] { callers[i].run(pattern); });
    callers[0].run(pattern);
    for (std::thread& thread : threads) thread.join();
    for (const Caller& caller : callers) {
      CHECK(caller.wrong == "");
      for (const Caller::Call& call : caller.calls) refused += pattern.is_refused(call.model) ? 1 : 0;
      calls += caller.calls.size();
    }
  }
  MESSAGE(calls << " calls, of which " << refused << " were refused");
  CHECK(refused * 50 > calls);
}
