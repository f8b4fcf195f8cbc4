// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What measuring and tracing add to a call, and to each of its shards: the medians of many short turns of calls that
// are not measured, measured and traced, one after the other. All shards are of one device without a thread. So they
// run on the calling thread, and other cores have no influence. The difference of calls with 1 and with 8 shards is the
// cost of 7 shards.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <fanout/observe.hpp>
#include <fanout/worker/registry.hpp>
#include <harness/ticks.hpp>

namespace {

class InCaller {
 public:
  InCaller() : worker_(&fanout::backend::registry().worker({.kind = "caller", .index = 0}, {}, false)) {}

  fanout::DeviceId id() const { return worker_->id(); }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return *worker_; }
  struct Entered {
    ~Entered() {}
  };
  Entered enter() const { return {}; }
  void synchronize() const noexcept {}
  static std::vector<InCaller> visible() { return {InCaller()}; }
  friend bool operator==(const InCaller&, const InCaller&) = default;

 private:
  fanout::backend::Worker* worker_;
};
static_assert(fanout::Device<InCaller>);

/// Shards of one row.
struct OfOneRow {
  fanout::Plan operator()(std::size_t rows, std::size_t) const {
    fanout::Plan plan;
    for (std::size_t row = 0; row < rows; ++row) plan.add({.rows = {row, row + 1}, .device = 0});
    if (rows == 0) plan.add({.rows = {}, .device = 0});
    return plan;
  }
};

constexpr int calls_of_a_turn = 200, turns = 2000;

struct Way {
  const char* name;
  std::vector<double> nanoseconds = {};  // of a call, in each turn

  double median() {
    std::nth_element(nanoseconds.begin(), nanoseconds.begin() + turns / 2, nanoseconds.end());
    return nanoseconds[turns / 2];
  }
};

double of_a_call(const auto& model, std::span<const float> input) {
  const std::int64_t begin = benchmarks::nanoseconds();
  for (int i = 0; i < calls_of_a_turn; ++i) {
    const auto sum = model(input);
    asm volatile("" : : "g"(&sum) : "memory");
  }
  return static_cast<double>(benchmarks::nanoseconds() - begin) / calls_of_a_turn;
}

/// Medians of a call with so many shards, as it is, measured and traced.
std::array<double, 3> medians(std::size_t shards) {
  const auto forward = [](std::span<const float> x) { return fanout::psum(x[0]); };
  const fanout::AllVisible<InCaller> devices;
  const fanout::ParallelModel plain{forward, devices, fanout::Options{.split = OfOneRow{}}};
  const fanout::ParallelModel measured{forward, devices, fanout::Options{.split = OfOneRow{}, .measure = true}};
  const std::vector<float> input(shards, 1);
  std::array<Way, 3> ways{Way{"plain"}, Way{"measured"}, Way{"traced"}};
  for (int turn = 0; turn < turns; ++turn) {
    ways[0].nanoseconds.push_back(of_a_call(plain, input));
    ways[1].nanoseconds.push_back(of_a_call(measured, input));
    fanout::trace({.path = "/dev/null", .calls = calls_of_a_turn},
                  [&] { ways[2].nanoseconds.push_back(of_a_call(plain, input)); });
  }
  return {ways[0].median(), ways[1].median(), ways[2].median()};
}

}  // namespace

int main() {
  const std::array<double, 3> one = medians(1);
  const std::array<double, 3> eight = medians(8);
  std::printf("%-10s %14s %14s %16s %16s\n", "", "1 shard, ns", "8 shards, ns", "added a shard", "added a call");
  const char* const names[] = {"plain", "measured", "traced"};
  for (std::size_t way = 0; way < 3; ++way) {
    const double shard = (eight[way] - one[way] - (eight[0] - one[0])) / 7;
    std::printf("%-10s %14.0f %14.0f %16.0f %16.0f\n", names[way], one[way], eight[way], shard,
                one[way] - one[0] - shard);
  }
}
