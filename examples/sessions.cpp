// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models that cannot be copied: an inference session, as the runtimes of neural networks have them, keeps a loaded
// graph and the device that it was made for, and can be neither copied nor moved. A factory makes one on each device,
// all at the same time.

#include <array>
#include <cmath>
#include <cstdio>
#include <fanout/fanout.hpp>
#include <stdexcept>
#include <string>

// [session]
class Session {
 public:
  Session(const std::string& graph, const fanout::DeviceId& device) : device_(device) {
    if (graph != "sigmoid.graph") throw std::invalid_argument("cannot load " + graph);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) {  // not const: a session has buffers
    auto y = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = 1 / (1 + std::exp(-x[i]));
    rows_ += x.size();
    return y;
  }

  void report() const { std::printf("session on %s: %zu rows\n", to_string(device_).c_str(), rows_); }

 private:
  fanout::DeviceId device_;
  std::size_t rows_ = 0;
};
// [/session]

int main() {
  // [use]
  const auto load = [](const auto& device) { return Session("sigmoid.graph", device.id()); };
  const fanout::ParallelModel sessions{fanout::factory(load), fanout::host_devices(3)};
  // [/use]

  constexpr std::array<float, 7> batch{-3, -2, -1, 0, 1, 2, 3};
  std::printf("sigmoid:");
  for (const float y : sessions(fanout::View<const float, 1>(batch.data(), batch.size()))) std::printf(" %.3f", y);
  std::printf("\n");
  for (std::size_t i = 0; i < sessions.devices().size(); ++i) sessions.replica(i).model().report();

  try {  // a session that cannot be made on some devices: the error names them all
    const auto fail = [&](const auto& device) {
      return Session(device.id().index == 0 ? "sigmoid.graph" : "missing.graph", device.id());
    };
    const fanout::ParallelModel none{fanout::factory(fail), fanout::host_devices(3)};
  } catch (const fanout::FactoryError& error) {
    std::printf("%s\n", error.what());
  }
}
