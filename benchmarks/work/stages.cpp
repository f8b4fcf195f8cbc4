// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench_stages [ROUNDS]: 64 micro-batches through two stages that compute equally long, on two cores, beside the
// pipelines of oneTBB and Taskflow where these were found; and a pipeline of one stage beside its ParallelModel.
// Contenders take turns in one process. `of the bound` is the time that a pipeline takes at least, 65 steps, over the
// time that it took. Each line has the median over the rounds, and the quartiles.

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#if defined(FANOUT_BENCH_HAS_TBB)
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#endif
#if defined(FANOUT_BENCH_HAS_TASKFLOW)
#include <taskflow/algorithm/pipeline.hpp>
#include <taskflow/taskflow.hpp>
#endif

#include <dispatch/bodies.hpp>
#include <fanout/stages.hpp>
#include <harness/cores.hpp>
#include <harness/samples.hpp>
#include <harness/ticks.hpp>

namespace {

constexpr std::size_t micro_batches = 64;

struct Contender {
  std::string name;
  std::function<void()> call;
  std::vector<double> nanoseconds = {};
};

/// Binds the calling thread to a core, the n-th of those that it may use, while it lives.
class BoundTo {
 public:
  explicit BoundTo(std::size_t n) {
    sched_getaffinity(0, sizeof before_, &before_);
    benchmarks::bind_to(benchmarks::allowed_cores().at(n));
  }
  BoundTo(const BoundTo&) = delete;
  BoundTo& operator=(const BoundTo&) = delete;
  ~BoundTo() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

/// Calls all contenders in turns, on the first core: fanout's own threads are bound, too.
void measure(std::vector<Contender>& contenders, int rounds) {
  for (Contender& each : contenders) each.call();  // starts the threads, which inherit where they may run
  const BoundTo bound(0);
  for (int round = -1; round < rounds; ++round) {
    for (Contender& each : contenders) {
      const std::int64_t begin = benchmarks::nanoseconds();
      each.call();
      if (round >= 0) each.nanoseconds.push_back(static_cast<double>(benchmarks::nanoseconds() - begin));
    }
  }
}

/// The times of the first over those of the second, pair by pair.
std::vector<double> ratios(const Contender& first, const Contender& second, double factor = 1) {
  std::vector<double> all;
  for (std::size_t i = 0; i < first.nanoseconds.size(); ++i) {
    all.push_back(factor * first.nanoseconds[i] / second.nanoseconds[i]);
  }
  return all;
}

using Column = fanout::View<const double, 1>;

auto layer(std::uint64_t turns) {
  return [turns](fanout::Context auto& ctx, Column x) {
    auto y = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) {
      benchmarks::work(turns);
      y(i) = x(i);
    }
    return y;
  };
}

auto on(std::size_t core) { return fanout::DeviceSet<fanout::HostDevice>({fanout::host_devices(2)[core]}); }

void measure_two_stages(double microseconds, int rounds) {
  const std::uint64_t turns = benchmarks::turns_in(1000 * microseconds);
  const fanout::Tensor<double, 1> x(micro_batches);
  const fanout::Pipeline net{fanout::PipelineOptions{.micro_batches = micro_batches, .in_flight = 8},
                             fanout::stage(layer(turns), on(0)), fanout::stage(layer(turns), on(1))};
  std::vector<Contender> contenders{
      {"one core",
       [=] {
         for (std::size_t i = 0; i < 2 * micro_batches; ++i) benchmarks::work(turns);
       }},
      {"fanout", [&] { net(x); }},
  };
#if defined(FANOUT_BENCH_HAS_TBB)
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  contenders.push_back(
      {"oneTBB", [=] {
         std::size_t next = 0;
         tbb::parallel_pipeline(
             8, tbb::make_filter<void, std::size_t>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control& control) {
                  if (next == micro_batches) {
                    control.stop();
                    return next;
                  }
                  benchmarks::work(turns);
                  return next++;
                }) & tbb::make_filter<std::size_t, void>(tbb::filter_mode::serial_in_order, [=](std::size_t) {
                  benchmarks::work(turns);
                }));
       }});
#endif
#if defined(FANOUT_BENCH_HAS_TASKFLOW)
  tf::Executor executor(2);
  tf::Pipeline pipeline(8,
                        tf::Pipe{tf::PipeType::SERIAL,
                                 [=](tf::Pipeflow& flow) {
                                   if (flow.token() == micro_batches) return flow.stop();
                                   benchmarks::work(turns);
                                 }},
                        tf::Pipe{tf::PipeType::SERIAL, [=](tf::Pipeflow&) { benchmarks::work(turns); }});
  tf::Taskflow flow;
  flow.composed_of(pipeline);
  contenders.push_back({"Taskflow", [&] {
                          executor.run(flow).wait();
                          pipeline.reset();
                        }});
#endif
  measure(contenders, rounds);
  std::printf("two stages of %.0f us\n", microseconds);
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    const double bound = (micro_batches + 1) / (2.0 * micro_batches);
    benchmarks::print_quartiles(contenders[i].name + ", of the bound", ratios(contenders[0], contenders[i], bound), "");
  }
  for (std::size_t i = 2; i < contenders.size(); ++i) {
    benchmarks::print_quartiles(contenders[i].name + " / fanout", ratios(contenders[i], contenders[1]), "");
  }
}

void measure_one_stage(int rounds) {
  const std::uint64_t turns = benchmarks::turns_in(1'000'000);
  const fanout::Tensor<double, 1> x(1);
  const fanout::ParallelModel model{layer(turns), on(0)};
  const fanout::Pipeline net{fanout::stage(layer(turns), on(0))};
  const fanout::Pipeline cut{fanout::PipelineOptions{.micro_batches = 4}, fanout::stage(layer(turns / 4), on(0))};
  const fanout::Tensor<double, 1> four(4);
  std::vector<Contender> contenders{{"ParallelModel", [&] { model(x); }},
                                    {"Pipeline of one stage", [&] { net(x); }},
                                    {"the same, 4 micro-batches of 250 us", [&] { cut(four); }}};
  measure(contenders, 4 * rounds);
  std::printf("one stage of 1 ms\n");
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    benchmarks::print_quartiles(contenders[i].name + " / model", ratios(contenders[i], contenders[0]), "");
  }
}

/// A caller that is not bound, and begins on the core of the second device.
void measure_unbound(int rounds) {
  const std::uint64_t turns = benchmarks::turns_in(100'000);
  const fanout::Tensor<double, 1> x(micro_batches);
  const fanout::Tensor<double, 1> two(2);
  const fanout::Pipeline net{fanout::PipelineOptions{.micro_batches = micro_batches, .in_flight = 8},
                             fanout::stage(layer(turns), on(0)), fanout::stage(layer(turns), on(1))};
  const fanout::ParallelModel model{layer(turns), fanout::host_devices(2)};
  const auto call_model = [&] {
    for (std::size_t i = 0; i < micro_batches; ++i) model(two);
  };
  std::printf("two stages, and two shards 64 times, of 100 us; the caller is not bound\n");
  for (const bool is_pipeline : {true, false}) {
    for (const std::size_t begins_on : {std::size_t{0}, std::size_t{1}}) {
      std::vector<double> milliseconds;
      for (int round = -1; round < rounds; ++round) {
        {
          const BoundTo bound(begins_on);
          benchmarks::work(20 * turns);
        }
        const std::int64_t begin = benchmarks::nanoseconds();
        is_pipeline ? static_cast<void>(net(x)) : call_model();
        if (round >= 0) milliseconds.push_back(1e-6 * static_cast<double>(benchmarks::nanoseconds() - begin));
      }
      benchmarks::print_quartiles(
          std::string(is_pipeline ? "Pipeline" : "ParallelModel") + ", begins on core " + std::to_string(begins_on),
          milliseconds, "ms");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 51;
  for (const double microseconds : {100.0, 10.0}) measure_two_stages(microseconds, rounds);
  measure_one_stage(rounds);
  measure_unbound(rounds);
}
