// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices that are not equally fast: an even split waits for the slowest one, a measured split learns their speeds, and
// a dealt split also follows a change during a call. The devices are simulated, so the times are the same on each
// machine: a CPU, and a GPU that is ten times faster.

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>
#include <string>

using namespace std::chrono_literals;

namespace {

const fanout::Tensor<float, 1> x(110'000);  // both devices together take 10 ms

const auto squares = [](fanout::Context auto& ctx, fanout::View<const float, 1> rows) {
  auto y = fanout::output<float>(ctx);
  for (std::size_t i = 0; i < rows.size(); ++i) y[i] = rows[i] * rows[i];
  return y;
};

/// Useful seconds of all devices.
double useful(const fanout::Report& report) {
  double sum = 0;
  for (const fanout::DeviceReport& device : report.devices()) sum += device.useful_seconds();
  return sum;
}

/// Calls a model on new devices. The GPU becomes four times slower 5 ms after the fifth call
/// began, which is when the time is `slow_at`.
void show(const char* name, const fanout::AnySplit& split, fanout::Duration slow_at) {
  // [model]
  const auto devices = fanout::simulated_devices({
      {.rows_per_second = 1e6},                                              // the CPU
      {.rows_per_second = 10e6, .slow_down = {.at = slow_at, .factor = 4}},  // the GPU
  });
  const fanout::ParallelModel model{squares, devices, fanout::Options{.split = split, .measure = true}};
  // [/model]
  std::printf("%s\n  call  rows of CPU + GPU       time  parallel efficiency\n", name);
  fanout::Report before = model.report();
  for (int call = 1; call <= 8; ++call) {
    model(x);
    const fanout::Report after = model.report();
    const auto rows = [&](std::size_t i) { return after.devices()[i].rows - before.devices()[i].rows; };
    const double seconds = after.seconds() - before.seconds();
    const std::string plan = std::to_string(rows(0)) + " + " + std::to_string(rows(1));
    std::printf("  %4d  %17s  %6.1f ms  %17.1f %%\n", call, plan.c_str(), 1e3 * seconds,
                100 * (useful(after) - useful(before)) / (2 * seconds));
    before = after;
  }
}

}  // namespace

int main() {
  // [splits]
  show("EvenSplit", fanout::EvenSplit{}, 225ms);
  show("MeasuredSplit", fanout::MeasuredSplit{}, 90ms);
  show("DealtSplit{MeasuredSplit{}}", fanout::DealtSplit{fanout::MeasuredSplit{}}, 48'750us);
  // [/splits]

  // [retry]
  const auto devices = fanout::simulated_devices({
      {.rows_per_second = 1e6}, {.rows_per_second = 10e6, .fail_at = 3},  // its third shard throws a DeviceError
  });
  const fanout::ParallelModel model{
      squares, devices,
      fanout::Options{.split = fanout::MeasuredSplit{}, .measure = true, .retry = fanout::Retry{.times = 1}}};
  for (int call = 0; call < 4; ++call) model(x);  // the third call runs the shard again on the CPU
  std::printf("\n%s", to_string(model.report()).c_str());
  // [/retry]
}
