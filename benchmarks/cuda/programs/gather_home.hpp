// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rows that leave one memory for all GPUs and come back to it: from page-locked memory, and from the main GPU's. Beside
// it the same by hand.

#include <cstddef>

#include "benchmarks/cuda/by_hand.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::gather_home {

struct Next {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    fanout::launch(ctx, x.size(), AddOne{y.data(), x.data()});
    return y;
  }
};

inline void measure(const Settings& settings, Line& line) {
  using Rows = fanout::Tensor<float, 2>;
  const int gpus = fanout::cuda::device_count();
  const auto devices = fanout::cuda_devices();
  const std::size_t rows = (settings.megabytes << 10U) * static_cast<std::size_t>(gpus), columns = 256;
  const fanout::ParallelModel model{Next{}, devices};
  {
    const Rows x = fanout::cuda::pinned<float>(rows, columns);
    Rows y = fanout::cuda::pinned<float>(rows, columns);
    model.into(y)(x);
    line.right(others_than(y, 1), y.size());
    ByHand by_hand(gpus, settings.megabytes << 20U);
    line.ratio("pinned",
               median_ratio(
                   settings.rounds, [&] { return seconds_of([&] { model.into(y)(x); }); },
                   [&] { return seconds_of([&] { by_hand.add_one_pinned(x.data(), y.data()); }); }),
               0.5, 1.2);
  }
  {
    const Rows x = fanout::to(Rows(rows, columns), devices[0]);
    Rows y = fanout::to(Rows(rows, columns), devices[0]);
    model.into(y)(x);
    line.right(others_than(y, 1), y.size());
    ByHand by_hand(gpus, settings.megabytes << 20U);
    line.ratio("main_gpu",
               median_ratio(
                   settings.rounds, [&] { return seconds_of([&] { model.into(y)(x); }); },
                   [&] { return seconds_of([&] { by_hand.add_one_from_first(x.data(), y.data()); }); }),
               0.5, 1.3);
    // The same without .into(y): the result is where the GPUs write it.
    line.tell("main_gpu_new", median_ratio(
                                  settings.rounds, [&] { return seconds_of([&] { model(x); }); },
                                  [&] { return seconds_of([&] { by_hand.add_one_from_first(x.data(), y.data()); }); }));
  }
}

inline constexpr Program program{"gather_home", 1, 0, &measure};

}  // namespace benchmarks::gather_home
