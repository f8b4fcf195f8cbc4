// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fanout/observe.hpp>

#include "observe/python.hpp"

using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;
using fanout_test::text_of;

namespace {

double sum_of(std::span<const double> rows) {
  double sum = 0;
  for (const double row : rows) sum += row;
  return sum;
}

// [observes]
/// Splits by the speed of each device in the calls until now: rows in a nanosecond.
struct BySpeed {
  std::vector<double> speeds;

  Plan operator()(std::size_t rows, std::size_t devices) const {
    if (speeds.size() != devices) return fanout::EvenSplit{}(rows, devices);
    return fanout::WeightedSplit(speeds)(rows, devices);
  }
  void observe(const fanout::CallTimes& call) {
    std::vector<double> seen(call.device_count, 0);
    for (std::size_t i = 0; i < call.plan->size(); ++i) {
      const fanout::Shard& shard = (*call.plan)[i];
      const auto time = static_cast<double>(call.shards[i].ended - call.shards[i].began + 1);
      seen[shard.device] = static_cast<double>(shard.rows.size()) / time;
    }
    speeds = seen;
  }
};
// [/observes]

/// The working directory of the test, with files of its own.
struct InFolder {
  fanout_test::TestFolder folder;
  std::filesystem::path before = std::filesystem::current_path();
  InFolder() { std::filesystem::current_path(folder / ""); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() { std::filesystem::current_path(before); }
};

}  // namespace

TEST_CASE("a report says where the time of the calls went") {
  const std::vector<double> x(1000, 1.0);
  const auto devices = fanout::host_devices(2);
  std::ostringstream out;
  // [report]
  const ParallelModel model{sum_of, devices, Options{.measure = true}};
  for (int i = 0; i < 100; ++i) model(x);
  const fanout::Report report = model.report();
  out << to_string(report);  // a table; report.csv() and report.json() are for programs
  // [/report]
  CHECK(out.str().find("100 calls in") != std::string::npos);
  CHECK(report.calls() == 100);
}

TEST_CASE("progress is told after each shard") {
  std::ostringstream log;
  // [progress]
  const auto show = [&log](const fanout::Progress& call) {
    log << call.rows_done << " of " << call.rows << " rows\n";  // rows of shards that failed are not done
  };
  const ParallelModel model{sum_of, fanout::host_devices(1), Options{.progress = show}};
  // [/progress]
  model(std::vector<double>(5));
  CHECK(log.str() == "5 of 5 rows\n");
}

TEST_CASE("a trace writes a timeline") {
  const InFolder here;
  const std::vector<double> x(1000, 1.0);
  const ParallelModel model{sum_of, fanout::host_devices(2)};
  const auto train = [&] { return model(x).size(); };
  const int rank = 2;
  // [trace]
  const auto trained = fanout::trace("run.json", [&] { return train(); });
  // [/trace]
  CHECK(trained == 2);
  CHECK(text_of("run.json").find("\"cat\": \"shard\"") != std::string::npos);
  // [ranks]
  fanout::trace({.path = "run." + std::to_string(rank) + ".json", .calls = 10'000, .process = rank}, train);
  // [/ranks]
  CHECK(text_of("run.2.json").find("\"pid\": 2") != std::string::npos);
}

TEST_CASE("a split policy learns from the calls of its model") {
  const ParallelModel model{sum_of, fanout::host_devices(2), Options{.split = BySpeed{}}};
  CHECK(model.plan(10) == fanout::EvenSplit{}(10, 2));
  const std::vector<double> x(1000, 1.0);
  model(x);
  CHECK(model.plan(1000).rows() == 1000);
  CHECK(model.report().calls() == 1);
}
