// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/host_device.hpp>
#include <fanout/worker/cores.hpp>
#include <fanout/worker/registry.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "support/affinity.hpp"
#include "support/environment.hpp"
#include "support/fork.hpp"
#include "support/message_of.hpp"
#include "support/skip.hpp"

using fanout::DeviceId;
using fanout::host_device_count;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::detail::Task;
using fanout_test::EnvironmentVariable;

namespace {

/// The tests' own surroundings do not count.
struct CleanEnvironment {
  EnvironmentVariable count{"FANOUT_HOST_DEVICES", nullptr};
  EnvironmentVariable pin{"FANOUT_PIN", nullptr};
};

std::size_t cores() { return fanout::backend::registry().cores().size(); }

/// Whether the machine's own quota forbids pinning.
bool quota_shares_cores() { return fanout::detail::quota_cores() != 0 && fanout::detail::quota_cores() < cores(); }

/// The cores that the device's thread may run on.
std::vector<int> cores_of_thread(const HostDevice& device) {
  struct Look : Task {
    std::vector<int> cores;
  } look;
  look.prepare([](Task& task) noexcept { static_cast<Look&>(task).cores = fanout_test::own_cores(); });
  device.worker().post(look);
  look.wait(0, fanout::detail::fork_epoch());
  return look.cores;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("host_devices() makes one device per core that the process may use") {
  const CleanEnvironment clean;
  const std::size_t quota = fanout::detail::quota_cores();
  const std::size_t expected = quota == 0 ? cores() : std::min(quota, cores());
  CHECK(host_device_count() == static_cast<int>(expected));
  const auto devices = host_devices();
  REQUIRE(devices.size() == expected);
  for (std::size_t i = 0; i < expected; ++i) {
    CHECK(devices[i].id() == DeviceId{.kind = "host", .index = static_cast<int>(i)});
    CHECK(devices[i].memory().space == fanout::host_memory);
  }
  CHECK(HostDevice::visible() == std::vector<HostDevice>(devices.begin(), devices.end()));
}

TEST_CASE("host_devices(n) makes n, and the same ones again") {
  const CleanEnvironment clean;
  for (const int n : {1, 2, 5}) {
    const auto devices = host_devices(n);
    const auto again = host_devices({.count = n});
    REQUIRE(devices.size() == static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < devices.size(); ++i) {
      CHECK(devices[i] == again[i]);
      CHECK(&devices[i].worker() == &again[i].worker());
    }
  }
}

TEST_CASE("bound devices share the cores out, and no core is in two of them") {
  const CleanEnvironment clean;
  if (quota_shares_cores()) {
    fanout_test::skip("a CPU quota forbids binding");
    return;
  }
  const auto all = fanout::backend::registry().cores();
  for (std::size_t n = 1; n <= std::min<std::size_t>(all.size(), 6); ++n) {
    CAPTURE(n);
    const auto devices = host_devices(static_cast<int>(n));
    std::set<int> used;
    for (const HostDevice& device : devices) {
      CHECK(device.bound());
      CHECK(device.cores().size() == all.size() / n);
      for (const int core : device.cores()) {
        CHECK(used.insert(core).second);
        CHECK(std::find(all.begin(), all.end(), core) != all.end());
      }
      CHECK(cores_of_thread(device) == device.cores());
    }
  }
}

TEST_CASE("cores_each says how many cores a device has") {
  const CleanEnvironment clean;
  if (quota_shares_cores()) {
    fanout_test::skip("a CPU quota forbids binding");
    return;
  }
  const auto all = fanout::backend::registry().cores();
  const auto one = host_devices({.count = 1, .cores_each = 1});
  CHECK(one[0].bound());
  CHECK(one[0].cores() == std::vector<int>{all.front()});
  const auto every = host_devices({.count = 1, .cores_each = static_cast<int>(all.size())});
  CHECK(every[0].bound());
  CHECK(every[0].cores() == all);
  const auto too_many = host_devices({.count = 1, .cores_each = static_cast<int>(all.size()) + 1});
  CHECK_FALSE(too_many[0].bound());
  CHECK(too_many[0].cores() == all);
  const auto two = host_devices({.count = 2, .cores_each = static_cast<int>(all.size())});
  CHECK_FALSE(two[0].bound());
  CHECK_FALSE(two[1].bound());
}

TEST_CASE("more devices than cores are not bound, and may use all cores") {
  const CleanEnvironment clean;
  const auto all = fanout::backend::registry().cores();
  const auto devices = host_devices(static_cast<int>(all.size()) + 1);
  REQUIRE(devices.size() == all.size() + 1);
  for (const HostDevice& device : devices) {
    CHECK_FALSE(device.bound());
    CHECK(device.cores() == all);
    CHECK(device.worker().spin_ticks(fanout::Spin::rules) == 0);
  }
  CHECK(cores_of_thread(devices[0]) == all);
}

TEST_CASE("devices are not bound if the options or FANOUT_PIN=off say so") {
  const CleanEnvironment clean;
  const auto all = fanout::backend::registry().cores();
  const auto free = host_devices({.count = 1, .pin = false});
  CHECK_FALSE(free[0].bound());
  CHECK(free[0].cores() == all);
  CHECK(cores_of_thread(free[0]) == all);
  {
    const EnvironmentVariable off("FANOUT_PIN", "off");
    CHECK(host_devices(1)[0] == free[0]);
    CHECK_FALSE(host_devices({.count = 1, .pin = true})[0].bound());
    CHECK_FALSE(host_devices()[0].bound());
  }
  const EnvironmentVariable on("FANOUT_PIN", "on");
  CHECK(host_devices(1)[0].bound() == !quota_shares_cores());
  CHECK_FALSE(host_devices({.count = 1, .pin = false})[0].bound());
}

TEST_CASE("an invalid FANOUT_PIN is an error that names the variable and its value") {
  const CleanEnvironment clean;
  for (const char* text : {"", "yes", "ON", "off ", "1"}) {
    CAPTURE(text);
    const EnvironmentVariable pin("FANOUT_PIN", text);
    CHECK_THROWS_AS(host_devices(1), fanout::InvalidArgument);
    const std::string message = fanout_test::message_of<fanout::Error>([] { host_devices(); });
    CHECK(has(message, "FANOUT_PIN"));
    CHECK(has(message, '"' + std::string(text) + '"'));
  }
}

TEST_CASE("FANOUT_HOST_DEVICES says how many devices host_devices() makes") {
  const CleanEnvironment clean;
  for (const int count : {1, 3, 11, 4096}) {
    const std::string text = std::to_string(count);
    const EnvironmentVariable variable("FANOUT_HOST_DEVICES", text.c_str());
    CHECK(host_device_count() == count);
    if (count > 100) continue;
    CHECK(host_devices().size() == static_cast<std::size_t>(count));
    CHECK(host_devices({.cores_each = 1}).size() == static_cast<std::size_t>(count));
    CHECK(host_devices(2).size() == 2);  // a number in the program goes first
    CHECK(HostDevice::visible().size() == static_cast<std::size_t>(count));
  }
}

TEST_CASE("an invalid FANOUT_HOST_DEVICES is an error that names the variable and its value") {
  const CleanEnvironment clean;
  for (const char* text : {"", "0", "-1", "+2", "two", "2x", " 2", "2 ", "1.5", "4097", "40960", "99999999999999999999",
                           "4294967297", "0x10"}) {
    CAPTURE(text);
    const EnvironmentVariable variable("FANOUT_HOST_DEVICES", text);
    CHECK_THROWS_AS(host_devices(), fanout::InvalidArgument);
    const std::string message = fanout_test::message_of<fanout::Error>([] { host_device_count(); });
    CHECK(has(message, "FANOUT_HOST_DEVICES"));
    CHECK(has(message, '"' + std::string(text) + '"'));
    CHECK_NOTHROW(host_devices(1));  // not asked for there
  }
}

TEST_CASE("counts that cannot be are invalid device ids") {
  const CleanEnvironment clean;
  CHECK_THROWS_AS(host_devices(0), fanout::InvalidDeviceId);
  CHECK_THROWS_AS(host_devices(-1), fanout::InvalidDeviceId);
  CHECK_THROWS_AS(host_devices(4097), fanout::InvalidDeviceId);
  CHECK_THROWS_AS(host_devices({.count = -2}), fanout::InvalidDeviceId);
  CHECK_THROWS_AS(host_devices({.count = 1, .cores_each = -1}), fanout::InvalidDeviceId);
  const std::string message = fanout_test::message_of<fanout::Error>([] { host_devices(-3); });
  CHECK(has(message, "Invalid device id"));
  CHECK(has(message, "-3"));
}

TEST_CASE("host_devices of a list, a vector or an array selects by index, the first as the main device") {
  const CleanEnvironment clean;
  const EnvironmentVariable four("FANOUT_HOST_DEVICES", "4");
  const auto all = host_devices();
  const std::vector<HostDevice> expected{all[2], all[0]};
  const auto same = [](const auto& set, const std::vector<HostDevice>& devices) {
    return std::vector<HostDevice>(set.begin(), set.end()) == devices;
  };
  CHECK(same(host_devices({2, 0}), expected));
  CHECK(same(host_devices(std::vector{2, 0}), expected));
  CHECK(same(host_devices(std::array{2, 0}), expected));
  const int array[] = {2, 0};
  CHECK(same(host_devices(array), expected));
  CHECK(host_devices({2, 0}).main_device() == DeviceId{.kind = "host", .index = 2});
}

TEST_CASE("braces are a list of indices, a number alone is a count, and options have names") {
  const CleanEnvironment clean;
  const EnvironmentVariable four("FANOUT_HOST_DEVICES", "4");
  CHECK(host_devices(2).ids() == host_devices({.count = 2}).ids());
  CHECK(host_devices(2).ids() == host_devices({0, 1}).ids());
  const auto braced = host_devices({2});
  REQUIRE(braced.size() == 1);
  CHECK(braced[0].id() == DeviceId{.kind = "host", .index = 2});
  CHECK_THROWS_AS(host_devices({}), fanout::InvalidDeviceId);
}

TEST_CASE("host_devices refuses an index that is not visible and lists those that are") {
  const CleanEnvironment clean;
  const EnvironmentVariable two("FANOUT_HOST_DEVICES", "2");
  for (const int index : {2, -1, 4096}) {
    CAPTURE(index);
    const std::string message = fanout_test::message_of<fanout::Error>([index] { host_devices({0, index}); });
    CHECK(has(message, "Invalid device id"));
    CHECK(has(message, "(host:0, host:1)"));
    CHECK(has(message, "found " + std::to_string(index)));
    CHECK_THROWS_AS(host_devices({0, index}), fanout::InvalidDeviceId);
    CHECK_THROWS_AS(host_devices(std::vector{index}), fanout::InvalidDeviceId);
  }
  CHECK(has(fanout_test::message_of<fanout::Error>([] { host_devices({1, 0, 1}); }), "host:1 at positions 0 and 2"));
  CHECK_THROWS_AS(host_devices({1, 0, 1}), fanout::InvalidDeviceId);
  CHECK_THROWS_AS(host_devices(std::vector<int>{}), fanout::InvalidDeviceId);
}

TEST_CASE("host devices share one memory and are told apart by their workers") {
  const auto devices = host_devices(2);
  CHECK(devices[0].memory().space == devices[1].memory().space);
  CHECK(devices[0] != devices[1]);
  HostDevice copy = devices[0];
  CHECK(copy == devices[0]);
  copy = devices[1];
  CHECK(copy == devices[1]);
}

TEST_CASE("using devices leaves the caller's own mask alone") {
  const CleanEnvironment clean;
  const auto before = fanout_test::own_cores();
  for (const HostDevice& device : host_devices(2)) {
    const auto entered = device.enter();
    cores_of_thread(device);
    device.synchronize();
  }
  CHECK(fanout_test::own_cores() == before);
}

TEST_CASE("in a process with a narrow affinity mask the devices keep within it") {
  // By exec, since the child of a fork keeps what its parent's registry has seen.
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  const auto all = fanout_test::own_cores();
  const std::vector<std::vector<int>> masks = {{all.front()}, {all.back()}, all};
  for (const auto& mask : masks) {
    std::string text;
    for (const int core : mask) text += (text.empty() ? "" : ",") + std::to_string(core);
    CAPTURE(text);
    const pid_t child = ::fork();
    if (child == 0) {
      fanout_test::narrow_to(mask);
      ::setenv("FANOUT_TEST_MASK", text.c_str(), 1);
      ::unsetenv("FANOUT_HOST_DEVICES");
      ::unsetenv("FANOUT_PIN");
      ::alarm(60);
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 1);
      ::execl("/proc/self/exe", "self", "--no-skip", "--test-case=(in the narrow process)*", nullptr);
      ::_exit(99);
    }
    CHECK(fanout_test::exit_code_of(child) == 0);
  }
  CHECK(fanout_test::own_cores() == all);
}

TEST_CASE("(in the narrow process) host_devices follows the mask" * doctest::skip()) {
  const char* text = std::getenv("FANOUT_TEST_MASK");
  REQUIRE(text != nullptr);
  std::vector<int> mask;
  for (const char* next = text; *next != '\0';) {
    char* end = nullptr;
    mask.push_back(static_cast<int>(std::strtol(next, &end, 10)));
    next = *end == ',' ? end + 1 : end;
  }
  REQUIRE(fanout_test::own_cores() == mask);
  CHECK(fanout::backend::registry().cores() == mask);
  const std::size_t quota = fanout::detail::quota_cores();
  const std::size_t expected = quota == 0 ? mask.size() : std::min(quota, mask.size());
  const auto devices = host_devices();
  REQUIRE(devices.size() == expected);
  for (const HostDevice& device : devices) {
    const auto thread = cores_of_thread(device);
    CHECK(thread == device.cores());
    CHECK(std::includes(mask.begin(), mask.end(), thread.begin(), thread.end()));
  }
  if (quota == 0 || quota >= mask.size()) {
    for (std::size_t i = 0; i < mask.size(); ++i) CHECK(devices[i].cores() == std::vector<int>{mask[i]});
  }
  const auto more = host_devices(static_cast<int>(mask.size()) + 2);
  CHECK_FALSE(more[0].bound());
  CHECK(cores_of_thread(more[0]) == mask);
  CHECK(fanout_test::own_cores() == mask);
}
