// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Four batches in flight on four devices, from the main GPU's memory: when is each result there? A result must not wait
// for the batches behind it, and neither must a copy that has nothing to do with them.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "benchmarks/cuda/kernels.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::behind {

struct Slow {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x, std::uint64_t nanoseconds) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    fanout::launch(ctx, 1, Spin{nanoseconds});
    fanout::launch(ctx, x.size(), AddOne{y.data(), x.data()});
    return y;
  }
};

inline void measure(const Settings& settings, Line& line) {
  using Rows = fanout::Tensor<float, 2>;
  constexpr int batches = 4;
  const auto devices = fanout::cuda_devices({.count = 4, .oversubscribe = true});
  const fanout::ParallelModel one{Slow{}, devices};
  const fanout::ParallelModel two{Slow{}, devices};
  const Rows x = fanout::to(Rows(1024, 256), devices[0]);
  const Rows other(64, 64);
  const auto nanoseconds = static_cast<std::uint64_t>(settings.milliseconds * 1e6);
  const double kernel = settings.milliseconds / 1e3;

  std::vector<std::vector<double>> there(batches + 1);
  median_of(settings.rounds, [&] {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<decltype(one.async(x, nanoseconds))> pending;
    for (int n = 0; n < batches; ++n) pending.push_back(one.async(x, nanoseconds));
    there[batches].push_back(seconds_of([&] { fanout::to(other, devices[0]); }));
    for (std::size_t n = 0; n < batches; ++n) {
      const auto y = pending[n].get();
      there[n].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      line.right(others_than(y, 1), y.size());
    }
    return 0.0;
  });
  for (auto& times : there) times.erase(times.begin());  // the warm-up
  const char* const names[] = {"first", "second", "third", "fourth"};
  for (std::size_t n = 0; n < batches; ++n) {
    line.ratio(names[n], quantile(there[n], 0.5) / (static_cast<double>(n + 1) * kernel), 0.9, 1.3);
  }
  line.ratio("unrelated_copy", quantile(there[batches], 0.5) / kernel, 0, 0.5);

  const double chain = median_of(settings.rounds, [&] {
    Rows y;
    const double seconds = seconds_of([&] { y = two(one(x, nanoseconds), nanoseconds); });
    line.right(others_than(y, 2), y.size());
    return seconds;
  });
  line.ratio("chain", chain / (2 * kernel), 0.9, 1.3);
}

inline constexpr Program program{"behind", 1, 50, &measure};

}  // namespace benchmarks::behind
