// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the schedules of training do to a pipeline of 4 stages: the time of a step, for how much of it devices are idle,
// and how many states a stage keeps. The devices are simulated: each takes 1 s for a step of a micro-batch.
//
// `schedules FOLDER` also writes a timeline of each schedule there, which docs/pictures/schedules.py draws.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>
#include <string>
#include <utility>
#include <vector>

using Column = fanout::View<const double, 1>;
using Numbers = fanout::Tensor<double, 1>;

/// y = weight * x. Its backward is split in two.
struct Scale {
  double weight = 1;

  auto forward(Column x) const { return fanout::saved(times_weight(x), x); }
  auto backward_input(Column x, Column dy) const { return std::pair{times_weight(dy), std::pair{x, dy}}; }
  auto backward_weights(const auto& kept) const {
    double sum = 0;
    for (std::size_t i = 0; i < kept.first.size(); ++i) sum += kept.first(i) * kept.second(i);
    return fanout::psum(sum);
  }
  Numbers times_weight(Column x) const {
    Numbers y(x);
    for (double& value : y) value *= weight;
    return y;
  }
};

/// Trains 4 stages on so many devices for a step. Returns what is to be said of it.
template <class Schedule>
std::string train(const Schedule& schedule, std::size_t count) {
  const auto devices =
      fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(count, {.rows_per_second = 1}));
  const auto on = [&](std::size_t stage) {
    return fanout::stage(Scale{}, fanout::DeviceSet<fanout::SimulatedDevice>({devices[stage % count]}));
  };
  const fanout::Pipeline net{fanout::PipelineOptions{.micro_batches = 8, .schedule = schedule}, on(0), on(1), on(2),
                             on(3)};
  const auto loss = [](Column y, Column) { return std::pair{fanout::psum(0), Numbers(y)}; };
  net.train(Numbers(8), Numbers(8), loss);
  const std::vector<std::size_t> kept = net.plan(8).kept;
  const double seconds = static_cast<double>(devices[0].time()) * 1e-9;
  const double busy = 4 * 8 * 3 / static_cast<double>(count);  // three steps of each micro-batch at each stage
  char text[100];
  std::snprintf(text, sizeof text, "%zu devices, %.0f s, idle %4.1f %%, at most %zu states at a stage", count, seconds,
                100 * (1 - busy / seconds), *std::max_element(kept.begin(), kept.end()));
  return text;
}

int main(int count, char** arguments) {
  const auto show = [&](const char* name, const auto& schedule, std::size_t devices) {
    const auto run = [&] { std::printf("%-21s %s\n", name, train(schedule, devices).c_str()); };
    if (count > 1) {
      fanout::trace(arguments[1] + ("/" + std::string(name)) + ".json", run);
    } else {
      run();
    }
  };
  show("GPipe", fanout::GPipe{}, 4);
  show("OneForwardOneBackward", fanout::OneForwardOneBackward{}, 4);
  show("ZeroBubble", fanout::ZeroBubble{}, 4);
  show("Interleaved", fanout::Interleaved{}, 2);
}
