// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/observe/report.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <locale>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fanout/fanout.hpp>

#include "observe/python.hpp"
#include "support/message_of.hpp"

using fanout::Report;
using fanout::detail::CallTotals;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// Two devices: one has 3/4 of the rows.
CallTotals some_totals() {
  CallTotals totals;
  totals.calls = 10;
  totals.failed = 1;
  totals.plan = 1'000;
  totals.shards = 2'000'000;
  totals.gather = 9'000;
  totals.host_useful = 1'005'000;
  totals.devices.push_back({.id = {"host", 0},
                            .calls = 10,
                            .shards = 20,
                            .rows = 750,
                            .bytes_in = 0,
                            .bytes_out = 0,
                            .scatter = 12'345,
                            .forward = 1'500'000,
                            .wait = 0});
  totals.devices.push_back({.id = {"cuda", 1, 2},
                            .calls = 9,
                            .shards = 9,
                            .rows = 250,
                            .bytes_in = 4'000,
                            .bytes_out = 2'000'000,
                            .scatter = 7'000,
                            .forward = 100'000,
                            .wait = 400'000});
  return totals;
}

/// A locale that writes 1234.5 as 1.234,5.
struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};
class GlobalLocale {
 public:
  explicit GlobalLocale(const std::locale& locale) : before_(std::locale::global(locale)) {}
  GlobalLocale(const GlobalLocale&) = delete;
  GlobalLocale& operator=(const GlobalLocale&) = delete;
  ~GlobalLocale() { std::locale::global(before_); }

 private:
  std::locale before_;
};

bool python_reads(const Report& report) {
  const fanout_test::TestFolder folder;
  std::ofstream(folder / "report.csv", std::ios::binary) << report.csv();
  std::ofstream(folder / "report.json", std::ios::binary) << report.json();
  return fanout_test::python(fanout_test::beside(__FILE__, "check_report.py"),
                             folder / "report.csv" + " " + folder / "report.json");
}

}  // namespace

TEST_CASE("a report has the sums of the calls, in seconds") {
  const Report report(some_totals());
  CHECK(report.calls() == 10);
  CHECK(report.failed_calls() == 1);
  CHECK(report.seconds() == doctest::Approx(2.01e-3).epsilon(1e-12));
  CHECK(report.plan_seconds() == doctest::Approx(1e-6).epsilon(1e-12));
  CHECK(report.shards_seconds() == doctest::Approx(2e-3).epsilon(1e-12));
  CHECK(report.gather_seconds() == doctest::Approx(9e-6).epsilon(1e-12));
  REQUIRE(report.devices().size() == 2);
  const fanout::DeviceReport& host = report.devices()[0];
  const fanout::DeviceReport& cuda = report.devices()[1];
  CHECK(host.share == 0.75);
  CHECK(cuda.share == 0.25);
  CHECK(host.next_share == 0);
  CHECK(host.shards == 20);
  CHECK(cuda.calls == 9);
  CHECK(cuda.bytes_in == 4'000);
  CHECK(cuda.bytes_out == 2'000'000);
  CHECK(host.scatter_seconds == doctest::Approx(12.345e-6).epsilon(1e-12));
  CHECK(cuda.useful_seconds() == doctest::Approx(0.5e-3).epsilon(1e-12));
  CHECK(host.rows_per_second() == doctest::Approx(500'000).epsilon(1e-12));
}

TEST_CASE("a report has each device's part of the next plan, in all of its shards") {
  const Report report(
      some_totals(), nullptr,
      {{.rows = {0, 10}, .device = 0}, {.rows = {10, 15}, .device = 1}, {.rows = {15, 50}, .device = 0}});
  CHECK(report.devices()[0].next_share == doctest::Approx(0.9).epsilon(1e-12));
  CHECK(report.devices()[1].next_share == doctest::Approx(0.1).epsilon(1e-12));
  CHECK(Report(some_totals(), nullptr, {{.rows = {0, 0}, .device = 1}}).devices()[1].next_share == 0);
}

TEST_CASE("a model reports the shares of the plan for as many rows as the last call had") {
  using fanout::WeightedSplit;
  const auto by_rows = [](std::size_t rows, std::size_t devices) {
    return rows < 10 ? WeightedSplit{1, 3}(rows, devices) : WeightedSplit{1, 0}(rows, devices);
  };
  const fanout::ParallelModel model{[](std::span<const int> x) { return fanout::psum(static_cast<int>(x.size())); },
                                    fanout::host_devices(2), fanout::Options{.split = by_rows, .measure = true}};
  const auto share = [&](std::size_t i) { return model.report().devices()[i].next_share; };
  CHECK(share(0) == 0);  // no call yet
  model(std::vector<int>(4));
  CHECK(share(0) == 0.25);
  CHECK(share(1) == 0.75);
  model(std::vector<int>(10));
  CHECK(share(0) == 1);
  CHECK(share(1) == 0);
  model(std::vector<int>(0));  // has no rows to share out
  CHECK(share(0) == 1);
}

TEST_CASE("a split policy that makes no plan any more does not keep a model from its report") {
  bool fails = false;
  const auto sometimes = [&fails](std::size_t rows, std::size_t devices) {
    if (fails) throw fanout::InvalidArgument("no plan");
    return fanout::EvenSplit{}(rows, devices);
  };
  const fanout::ParallelModel model{[](std::span<const int> x) { return fanout::psum(static_cast<int>(x.size())); },
                                    fanout::host_devices(2), fanout::Options{.split = sometimes, .measure = true}};
  model(std::vector<int>(4));
  CHECK(model.report().devices()[1].next_share == 0.5);
  fails = true;
  CHECK(model.report().calls() == 1);
  CHECK(model.report().devices()[1].next_share == 0);
}

TEST_CASE("the efficiencies are POP's") {
  const Report report(some_totals());
  CHECK(report.load_balance() == doctest::Approx(1.0 / 1.5).epsilon(1e-12));
  CHECK(report.communication_efficiency() == doctest::Approx(1.5 / 2.01).epsilon(1e-12));
  CHECK(report.parallel_efficiency() == doctest::Approx(1.0 / 2.01).epsilon(1e-12));
  CHECK(report.device_offload_efficiency() == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("parallel efficiency is load balance times communication efficiency, for any times") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    CallTotals totals;
    totals.calls = 1;
    totals.plan = static_cast<std::int64_t>(random() >> 30U);
    totals.shards = static_cast<std::int64_t>(random() >> 20U);
    totals.gather = static_cast<std::int64_t>(random() >> 40U);
    for (std::uint64_t device = 0; device <= random() % 7; ++device) {
      totals.devices.push_back({.id = {"host", static_cast<int>(device)},
                                .forward = static_cast<std::int64_t>(random() >> 24U),
                                .wait = static_cast<std::int64_t>(random() >> 26U)});
    }
    const Report report(totals);
    const double product = report.load_balance() * report.communication_efficiency();
    CHECK(std::abs(report.parallel_efficiency() - product) <= 1e-12 * product);
  }
}

TEST_CASE("a report of nothing has no rows, and perfect efficiencies") {
  const Report report;
  CHECK(report.calls() == 0);
  CHECK(report.seconds() == 0);
  CHECK(report.load_balance() == 1);
  CHECK(report.communication_efficiency() == 1);
  CHECK(report.parallel_efficiency() == 1);
  CHECK(report.device_offload_efficiency() == 1);
  CHECK(report.csv().find('\n') == report.csv().size() - 1);
  CHECK(says(report.json(), "\"calls\": 0", "\"devices\": []}"));
  CHECK(says(to_string(report), "0 calls", "load balance 100.0 %"));
}

TEST_CASE("Python reads a report's CSV and JSON, and finds the same numbers") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  CHECK(python_reads(Report(some_totals())));
  const fanout::ParallelModel model{[](std::span<const int> x) { return fanout::psum(static_cast<int>(x.size())); },
                                    fanout::host_devices(3), fanout::Options{.measure = true}};
  for (int i = 0; i < 5; ++i) model(std::vector<int>(100));
  CHECK(python_reads(model.report()));
}

TEST_CASE("a report prints the same in each locale") {
  const Report report(some_totals());
  const std::string csv = report.csv();
  const std::string json = report.json();
  const std::string table = to_string(report);
  const GlobalLocale comma(std::locale(std::locale::classic(), new Comma));
  CHECK(report.csv() == csv);
  CHECK(report.json() == json);
  CHECK(to_string(report) == table);
}

TEST_CASE("the table has a line for each device, in columns, and the efficiencies below") {
  const fanout::Plan next{{.rows = {0, 7}, .device = 0}, {.rows = {7, 10}, .device = 1}};
  CHECK(to_string(Report(some_totals(), nullptr, next)) ==
        "device    calls  rows   share    next  scatter  forward    wait  rows/s       in      out\n"
        "host:0       10   750  75.0 %  70.0 %  12.3 us  1.50 ms  0.00 s   500 k   0.00 B   0.00 B\n"
        "cuda:1#2      9   250  25.0 %  30.0 %  7.00 us   100 us  400 us   500 k  4.00 kB  2.00 MB\n"
        "10 calls in 2.01 ms: plan 0.0 %, shards 99.5 %, gather 0.4 %; 1 more failed\n"
        "load balance 66.7 % * communication efficiency 74.6 % = parallel efficiency 49.8 %; device offload "
        "efficiency 50.0 %\n");
}

TEST_CASE("numbers get a unit that leaves three digits") {
  using fanout::detail::with_unit;
  CHECK(with_unit(0, "s") == "0.00 s");
  CHECK(with_unit(1, "s") == "1.00 s");
  CHECK(with_unit(0.9994, "s") == "999 ms");
  CHECK(with_unit(0.9996, "s") == "1.00 s");
  CHECK(with_unit(12.34e-6, "s") == "12.3 us");
  CHECK(with_unit(123.4e-9, "s") == "123 ns");
  CHECK(with_unit(0.1e-9, "s") == "0.10 ns");
  CHECK(with_unit(999.4, "B") == "999 B");
  CHECK(with_unit(999.6, "B") == "1.00 kB");
  CHECK(with_unit(9.996e9, "") == "10.0 G");
  CHECK(with_unit(5e12, "B") == "5000 GB");
  CHECK(with_unit(12, "") == "12.0");
}

TEST_CASE("a model whose calls are not measured has no report") {
  const fanout::ParallelModel model{[](std::span<const int> x) { return static_cast<int>(x.size()); },
                                    fanout::host_devices(1)};
  CHECK(says(message_of<fanout::Error>([&] { static_cast<void>(model.report()); }), "not measured",
             "Options{.measure = true}"));
}
