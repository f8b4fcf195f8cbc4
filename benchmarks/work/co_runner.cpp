// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench_co_runner [ROUNDS]: a call on the first two cores while another thread computes on the second one. Contenders
// take turns in one process: an even split, a dealt one, a measured one, both of them together, and OpenMP's static and
// guided schedules. Each is shown with and without the other thread, as a ratio to the even split: above 1 is faster.

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fanout/observe.hpp>
#include <harness/ticks.hpp>

namespace {

constexpr std::size_t rows = 4'000'000;  // about 15 ms on one core

float work(float x) { return std::sin(x) * std::exp(-0.001F * x) + std::sqrt(x); }

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) const {
    auto y = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = work(x[i]);
    return y;
  }
};

void bind_to(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

/// Computes on the second core as long as it lives.
class CoRunner {
 public:
  CoRunner()
      : thread_([this] {
          bind_to(1);
          float x = 1;
          while (!stops_.load(std::memory_order_relaxed)) {
            x = work(x);
            asm volatile("" : "+x"(x));
          }
        }) {}
  ~CoRunner() {
    stops_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

struct Contender {
  const char* name;
  std::function<void()> call;
  std::vector<double> seconds = {};
};

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

template <class Split>
auto model_with(Split split) {
  return fanout::ParallelModel{Model{}, fanout::host_devices(2), fanout::Options{.split = std::move(split)}};
}

void measure(std::vector<Contender>& contenders, int rounds) {
  for (Contender& each : contenders) {
    each.seconds.clear();
    for (int warm = 0; warm < 5; ++warm) each.call();
  }
  for (int round = 0; round < rounds; ++round) {
    for (Contender& each : contenders) {
      const std::int64_t begin = benchmarks::nanoseconds();
      for (int call = 0; call < 5; ++call) each.call();
      each.seconds.push_back(1e-9 * static_cast<double>(benchmarks::nanoseconds() - begin) / 5);
    }
  }
}

void print(const char* title, const std::vector<Contender>& contenders) {
  std::printf("%s\n", title);
  for (const Contender& each : contenders) {
    std::vector<double> speeds;
    for (std::size_t round = 0; round < each.seconds.size(); ++round) {
      speeds.push_back(contenders[0].seconds[round] / each.seconds[round]);
    }
    std::printf("  %-24s %8.2f ms   speed of the even split * %5.2f   quartiles %5.2f to %5.2f\n", each.name,
                1e3 * quantile(each.seconds, 0.5), quantile(speeds, 0.5), quantile(speeds, 0.25),
                quantile(speeds, 0.75));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  fanout::Tensor<float, 1> x(rows);
  for (std::size_t i = 0; i < rows; ++i) x[i] = static_cast<float>(i % 1000);
  std::vector<float> y(rows);
  const auto even = model_with(fanout::EvenSplit{});
  const auto dealt = model_with(fanout::DealtSplit{});
  const auto measured = model_with(fanout::MeasuredSplit{});
  const auto both = model_with(fanout::DealtSplit{fanout::MeasuredSplit{}});
  std::vector<Contender> contenders{
      {"EvenSplit", [&] { static_cast<void>(even(x)); }},
      {"DealtSplit", [&] { static_cast<void>(dealt(x)); }},
      {"MeasuredSplit", [&] { static_cast<void>(measured(x)); }},
      {"DealtSplit{MeasuredSplit}", [&] { static_cast<void>(both(x)); }},
      {"OpenMP static",
       [&] {
#pragma omp parallel for schedule(static) num_threads(2)
         for (std::size_t i = 0; i < rows; ++i) y[i] = work(x[i]);
       }},
      {"OpenMP guided",
       [&] {
#pragma omp parallel for schedule(guided) num_threads(2)
         for (std::size_t i = 0; i < rows; ++i) y[i] = work(x[i]);
       }},
  };
  bind_to(0);
#pragma omp parallel num_threads(2)
  bind_to(omp_get_thread_num());
  measure(contenders, rounds);
  print("alone", contenders);
  const CoRunner other;
  measure(contenders, rounds);
  print("while another thread computes on the second core", contenders);
}
