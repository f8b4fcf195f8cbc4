// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>
#include <support/simulated.hpp>

namespace {

using fanout::DeviceSet;
using fanout::Options;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::SimulatedDevice;
using fanout::stage;
using fanout::Tensor;
using fanout_test::simulated;

using Column = fanout::View<const double, 1>;

struct Pass {
  auto forward(Column x) const { return fanout::saved(Tensor<double, 1>(x), 0); }
  auto backward(int, Column dy) const { return std::pair{Tensor<double, 1>(dy), fanout::psum(0)}; }
};

const auto loss = [](Column y, Column) { return std::pair{fanout::psum(0), Tensor<double, 1>(y)}; };

/// Each step of a row takes a second.
const fanout::SimulatedDeviceOptions of_a_second{.rows_per_second = 1};

auto on(const SimulatedDevice& device) {
  return stage(Pass{}, DeviceSet<SimulatedDevice>({device}), Options{.measure = true});
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the reports of stages say for how long they have no step") {
  const auto devices = simulated(4, of_a_second);
  const Pipeline net{PipelineOptions{.micro_batches = 8}, on(devices[0]), on(devices[1]), on(devices[2]),
                     on(devices[3])};
  const Tensor<double, 1> x(8);
  net(x);  // 8 steps of 11
  for (const fanout::Report& report : net.report()) {
    CHECK(report.calls() == 8);
    CHECK(report.seconds() == doctest::Approx(8).epsilon(1e-12));
    CHECK(report.bubble() == doctest::Approx(3.0 / 11).epsilon(1e-12));
  }
  net.train(x, x, loss);  // 16 of 22
  for (const fanout::Report& report : net.report()) {
    CHECK(report.calls() == 24);
    CHECK(report.bubble() == doctest::Approx(9.0 / 33).epsilon(1e-12));
    CHECK(to_string(report).find("bubble 27.3 %") != std::string::npos);
    CHECK(report.json().find("\"bubble\": 0.27") != std::string::npos);
  }
  CHECK(net.stage<0>().report().bubble() == 0);
  CHECK(to_string(net.stage<0>().report()).find("bubble") == std::string::npos);
}

TEST_CASE("pending batches that follow each other count once, and have less of a bubble") {
  const auto devices = simulated(2, of_a_second);
  const Pipeline net{PipelineOptions{.micro_batches = 4}, on(devices[0]), on(devices[1])};
  auto first = net.async(Tensor<double, 1>(4));
  auto second = net.async(Tensor<double, 1>(4));
  first.get();
  second.get();
  const auto reports = net.report();
  CHECK(reports[0].bubble() == doctest::Approx(1.0 / 9).epsilon(1e-12));  // 8 steps of 9
  CHECK(reports[1].bubble() == doctest::Approx(1.0 / 9).epsilon(1e-12));
}

TEST_CASE("the time of pending batches counts from the first one") {
  const auto devices = simulated(3, of_a_second);
  const Pipeline net{PipelineOptions{.micro_batches = 4}, on(devices[0]), on(devices[1])};
  const fanout::ParallelModel other{[](Column) {}, DeviceSet<SimulatedDevice>({devices[2]})};
  auto first = net.async(Tensor<double, 1>(4));
  other(Tensor<double, 1>(2));  // two seconds, in which the pipeline has begun
  auto second = net.async(Tensor<double, 1>(4));
  first.get();
  second.get();
  CHECK(net.report()[0].bubble() == doctest::Approx(1.0 / 9).epsilon(1e-12));
}

TEST_CASE("a pipeline is not measured unless its stages are") {
  const Pipeline net{stage(Pass{}, fanout::host_devices(1)), stage(Pass{}, fanout::host_devices(1))};
  net(Tensor<double, 1>(4));
  CHECK_THROWS_WITH_AS(net.report(), doctest::Contains("not measured"), fanout::Error);
}

TEST_CASE("a timeline has the steps of a pipeline") {
  const auto devices = simulated(2, of_a_second);
  const Pipeline net{PipelineOptions{.micro_batches = 3}, on(devices[0]), on(devices[1])};
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "fanout_steps.json";
  const Tensor<double, 1> x(3);
  fanout::trace(path.string(), [&] { net.train(x, x, loss); });
  const std::string text = text_of(path);
  std::filesystem::remove(path);
  for (const char* found : {"\"name\": \"forward of stage 0\"", "\"name\": \"backward of stage 1\"",
                            "\"pass\": \"forward\", \"stage\": 1, \"micro_batch\": 2",
                            "\"pass\": \"backward\", \"stage\": 0, \"micro_batch\": 0"}) {
    CAPTURE(found);
    CHECK(text.find(found) != std::string::npos);
  }
}
