// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/parallel/checked_options.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <utility>

#include <fanout/device/host_device.hpp>

#include "support/message_of.hpp"

using fanout::DeviceId;
using fanout::host_devices;
using fanout::Options;
using fanout::Plan;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Hosts = fanout::DeviceSet<fanout::HostDevice>;

struct Checked {
  Hosts devices = host_devices(3);
  fanout::detail::CallStatistics times;
  fanout::detail::CopyTeam team{devices};
  fanout::detail::CheckedOptions options;

  explicit Checked(Options&& given) : options(std::move(given), devices, times, team) {}
};

}  // namespace

TEST_CASE("the settings of all calls are those of the options") {
  const Checked checked(Options{.axis = 1, .seed = 5, .rethrow_single = true, .deadline = std::chrono::seconds(2)});
  const fanout::detail::CallSettings& settings = checked.options.settings;
  CHECK(settings.target.space == fanout::host_memory);
  CHECK(settings.axis == 1);
  CHECK(settings.seed == 5);
  CHECK(settings.rethrow_single);
  CHECK(settings.deadline.nanoseconds() == 2'000'000'000);
  CHECK(settings.late_sink == nullptr);
  CHECK(settings.times == &checked.times);
  CHECK(settings.team == &checked.team);
}

TEST_CASE("a call's plan comes from sharded arguments, then from the rows, then from on_all") {
  const Checked checked(Options{});
  const Plan given{{.rows = {0, 7}, .device = 2}};
  CHECK(checked.options.plan({.rows = 9, .plan = &given}, fanout::detail::on_all_request) == given);
  CHECK(checked.options.plan({.rows = 9, .plan = nullptr}, fanout::detail::plain_request) == fanout::EvenSplit{}(9, 3));
  CHECK(checked.options.plan({.rows = {}, .plan = nullptr}, fanout::detail::on_all_request) ==
        fanout::EvenSplit{}(0, 3));
  CHECK(checked.options.plan({.rows = {}, .plan = nullptr}, fanout::detail::plain_request).size() == 1);
}

TEST_CASE("options that do not fit the devices are refused") {
  CHECK(says(
      message_of<fanout::InvalidDeviceId>([] { Checked{Options{.output = DeviceId{.kind = "remote", .index = 4}}}; }),
      "Invalid device id", "Options::output", "host:0, host:1, host:2", "remote:4"));
  CHECK(says(message_of<fanout::InvalidArgument>([] { Checked{Options{.deadline = std::chrono::seconds(-1)}}; }),
             "a negative time", "Options::deadline"));
  const Checked checked(Options{});
  const Plan foreign{{.rows = {0, 7}, .device = 3}};
  CHECK(says(message_of<fanout::InvalidArgument>([&] {
               static_cast<void>(checked.options.plan({.rows = 7, .plan = &foreign}, fanout::detail::plain_request));
             }),
             "sharded over other devices", "3 devices or fewer"));
}
