// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contributing/logging_device.hpp"

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <fanout/fanout.hpp>

#include "device/device_conformance.hpp"

// [conformance]
FANOUT_TEST_DEVICE(contributing::LoggingDevice);
// [/conformance]

// [launch]
template <>
struct fanout::backend::Launcher<contributing::LoggingDevice> : fanout::backend::LoopLauncher {};
// [/launch]

namespace {

using contributing::LoggingDevice;

/// Sends the log into a file for as long as it lives.
class Logged {
 public:
  Logged() { LoggingDevice::log = file_; }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;
  ~Logged() {
    LoggingDevice::log = stderr;
    std::fclose(file_);
  }

  std::string text() const {
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    return text;
  }

 private:
  std::FILE* file_ = std::tmpfile();
};

}  // namespace

TEST_CASE("shards on logging devices run in the caller's thread and are logged") {
  const Logged logged;
  const auto caller = std::this_thread::get_id();
  // [use]
  const fanout::ParallelModel model{[caller](std::span<const int>) { return std::this_thread::get_id() == caller; },
                                    fanout::AllVisible<LoggingDevice>{}};
  const auto in_caller = model(std::vector{1, 2});
  // [/use]
  REQUIRE(in_caller.size() == 2);
  CHECK(in_caller[0]);
  CHECK(in_caller[1]);
  CHECK(logged.text() == "log:0 begins\nlog:0 ends\nlog:1 begins\nlog:1 ends\n");
}

TEST_CASE("a model launches on logging devices") {
  struct Twice {
    fanout::View<int, 1> y;
    fanout::View<const int, 1> x;
    void operator()(std::size_t i) const { y[i] = 2 * x[i]; }
  };
  const Logged logged;
  const fanout::ParallelModel model{[](fanout::Context auto& ctx, fanout::View<const int, 1> x) {
                                      auto y = fanout::output<int>(ctx);
                                      fanout::launch(ctx, x.size(), Twice{y, x});
                                      return y;
                                    },
                                    fanout::AllVisible<LoggingDevice>{}};
  const auto y = model(std::vector{1, 2, 3});
  REQUIRE(y.size() == 3);
  CHECK(y[0] == 2);
  CHECK(y[2] == 6);
}

TEST_CASE("logging devices stand beside host devices") {
  const Logged logged;
  const auto caller = std::this_thread::get_id();
  const auto on_a_log = [caller](fanout::Context auto& ctx, int) {
    using D = std::remove_cvref_t<decltype(ctx.device())>;
    return std::is_same_v<D, LoggingDevice> && std::this_thread::get_id() == caller;
  };
  const auto devices = fanout::host_devices(2) | fanout::AllVisible<LoggingDevice>{}.select();
  const auto outputs = fanout::apply(fanout::replicate(on_a_log, devices), fanout::scatter(devices, 1));
  REQUIRE(outputs.size() == 4);
  CHECK_FALSE(outputs[0]);
  CHECK(outputs[2]);
  CHECK(outputs[3]);
  const std::string text = logged.text();
  CHECK(text.find("log:0 begins\nlog:0 ends\n") != std::string::npos);
  CHECK(text.find("log:1 begins\nlog:1 ends\n") != std::string::npos);
}
