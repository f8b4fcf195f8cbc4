// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench_buckets [ROUNDS]: how much of the reduction of gradients is hidden by buckets. Two shards compute the gradients
// of 32 layers of 2 MB, one after the other, for 1 ms each: they wait, as for a GPU or a network, or compute on their
// core. Contenders take turns in one process: no reduction, one all_reduce() of all at the end, one after each layer,
// and buckets of two sizes. `hidden` is the part of the time that the reduction at the end takes which does not show.
// Each line has the median over the rounds, and the quartiles.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>
#include <harness/samples.hpp>
#include <harness/ticks.hpp>

namespace {

constexpr std::size_t layers = 32;
constexpr std::size_t elements = 500'000;
constexpr std::chrono::microseconds of_layer(1'000);

enum class Reduction { none, at_the_end, each_layer, buckets };

struct Backward {
  bool waits;
  Reduction reduction;
  fanout::backend::BucketSizes sizes = {};

  std::size_t forward(fanout::Context auto& ctx, fanout::RowRange rows) const {
    static thread_local std::vector<fanout::Tensor<float, 1>> gradients(layers, fanout::Tensor<float, 1>(elements));
    auto communicator = ctx.communicator();
    auto buckets = communicator.buckets(sizes);
    for (auto& gradient : gradients) {
      compute();
      if (reduction == Reduction::each_layer) communicator.all_reduce(gradient);
      if (reduction == Reduction::buckets) buckets.all_reduce_async(gradient);
    }
    if (reduction == Reduction::at_the_end) communicator.all_reduce(gradients);
    buckets.wait();
    return rows.size();
  }

  void compute() const {
    if (waits) return std::this_thread::sleep_for(of_layer);
    const std::int64_t end = benchmarks::nanoseconds() + std::chrono::nanoseconds(of_layer).count();
    while (benchmarks::nanoseconds() < end) {
    }
  }
};

struct Contender {
  std::string name;
  std::function<void()> call;
  std::vector<double> milliseconds = {};
};

Contender contender(const std::string& name, const Backward& backward) {
  using Model = fanout::ParallelModel<Backward, fanout::DeviceSet<fanout::HostDevice>>;
  return {name, [model = std::make_shared<Model>(backward, fanout::host_devices(2))] {
            static_cast<void>((*model)(fanout::Range{2}));
          }};
}

void measure(bool waits, int rounds) {
  constexpr std::size_t mb = 1'000'000;
  std::vector<Contender> contenders{
      contender("no reduction", {waits, Reduction::none}),
      contender("all_reduce() of all at the end", {waits, Reduction::at_the_end}),
      contender("all_reduce() after each layer", {waits, Reduction::each_layer}),
      contender("buckets, the first of 1 MiB, others of 25 MiB", {waits, Reduction::buckets}),
      contender("buckets of 4 MB", {waits, Reduction::buckets, {.first = 4 * mb, .others = 4 * mb}}),
  };
  for (int round = -1; round < rounds; ++round) {
    for (Contender& each : contenders) {
      const std::int64_t begin = benchmarks::nanoseconds();
      each.call();
      if (round >= 0) each.milliseconds.push_back(1e-6 * static_cast<double>(benchmarks::nanoseconds() - begin));
    }
  }
  std::printf("layers that %s\n", waits ? "wait" : "compute");
  for (const Contender& each : contenders) benchmarks::print_quartiles(each.name, each.milliseconds, "ms");
  for (std::size_t i = 2; i < contenders.size(); ++i) {
    std::vector<double> hidden;
    for (std::size_t round = 0; round < contenders[i].milliseconds.size(); ++round) {
      const double none = contenders[0].milliseconds[round];
      const double shown = contenders[i].milliseconds[round] - none;
      hidden.push_back(100 * (1 - shown / (contenders[1].milliseconds[round] - none)));
    }
    benchmarks::print_quartiles("hidden by " + contenders[i].name, hidden, "% ");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  measure(true, rounds);
  measure(false, rounds);
}
