// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/visible/visible_devices_report.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include <fanout/cuda/runtime/availability.hpp>

#include "support/environment.hpp"
#include "support/message_of.hpp"

using fanout::cuda::PhysicalGpu;
using fanout::cuda::visible_devices_report;
using fanout::cuda::detail::SeenDevice;
using fanout::cuda::detail::VisibleDevicesReport;
using fanout_test::EnvironmentVariable;
using fanout_test::says;

namespace {

using Machine = std::vector<PhysicalGpu>;
using Seen = std::vector<SeenDevice>;

const Machine machine = {
    {.uuid = "GPU-aa", .name = "A100"}, {.uuid = "GPU-bb", .name = "A100"}, {.uuid = "GPU-cc", .name = "T4"}};

SeenDevice seen(std::size_t gpu) {
  return {.uuid = machine[gpu].uuid, .name = machine[gpu].name, .bus_id = "0000:0" + std::to_string(gpu) + ":00.0"};
}

/// The report where the machine's GPUs are not known.
std::string report(const char* variable, const std::optional<Seen>& shown, const std::string& reason = {}) {
  return VisibleDevicesReport{.variable = variable, .order = nullptr, .machine = {}, .seen = shown, .reason = reason}
      .text();
}

/// The report where they are.
std::string full_report(const char* variable, const Seen& shown, const char* order = "PCI_BUS_ID") {
  return VisibleDevicesReport{.variable = variable, .order = order, .machine = machine, .seen = shown, .reason = "none"}
      .text();
}

bool has(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("the report tells what each token means, and where and why the list ended") {
  const std::string text = full_report("1,0,abc,2", {seen(1), seen(0)});
  CHECK(says(text, "CUDA_VISIBLE_DEVICES is \"1,0,abc,2\":\n",
             "  \"1\" is device 0: A100, GPU-bb, on the bus at 0000:01:00.0\n",
             "  \"0\" is device 1: A100, GPU-aa, on the bus at 0000:00:00.0\n",
             "  \"abc\" ends the list: it does not begin with a number\n",
             "  \"2\" is not read: the list ended before it\n", "2 devices are visible.\n",
             "Not visible: GPU 2 on the bus, T4, GPU-cc.\n"));
  CHECK(!has(text, "CUDA shows other devices"));
}

TEST_CASE("the report says how GPUs are counted") {
  CHECK(has(full_report("0", {seen(0)}), "CUDA_DEVICE_ORDER is \"PCI_BUS_ID\": numbers count the GPUs as they stand"));
  CHECK(
      has(full_report("0", {seen(0)}, nullptr), "CUDA_DEVICE_ORDER is unset: numbers count the GPUs from the fastest"));
  CHECK(
      has(full_report("0", {seen(0)}, "FASTEST_FIRST"), "is \"FASTEST_FIRST\": numbers count the GPUs from the fast"));
  CHECK(
      has(full_report("0", {seen(0)}, "pci"), "is \"pci\", which CUDA does not know: numbers count the GPUs from the"));
}

TEST_CASE("an unset and an empty variable are told apart") {
  CHECK(says(report(nullptr, Seen{seen(0), seen(2)}), "is unset: every GPU is visible", "device 0: A100, GPU-aa",
             "device 1: T4, GPU-cc", "2 devices are visible"));
  CHECK(says(report("", Seen{}, "no CUDA-capable device is detected"), "is empty: no GPU is visible",
             "No device is visible: no CUDA-capable device is detected."));
}

TEST_CASE("if the machine's GPUs are not known, the report says so and guesses what ended the list") {
  const std::string text = report("1,5,0", Seen{seen(1)});
  CHECK(says(text, "\"1\" is device 0: A100, GPU-bb", "\"5\" would be device 1, which CUDA does not show: most likely",
             "\"0\" comes after it", "1 device is visible", "The other GPUs of the machine are unknown"));
  CHECK(!has(text, "CUDA shows other devices"));
  CHECK(has(full_report("1,5,0", {seen(1)}), "\"5\" ends the list: there is no GPU of that number"));
}

TEST_CASE("if CUDA cannot be asked, the report explains the text of the variable alone") {
  const std::string text = report("1,0,-1", {}, "no driver");
  CHECK(says(text, "\"1\" would be device 0\n", "\"0\" would be device 1\n", "\"-1\" ends the list: it is negative",
             "No device is visible: no driver."));
}

TEST_CASE("rule 180: the report says that late changes do nothing, and sees some that were made") {
  const char* differs = "CUDA shows other devices than these variables name";
  CHECK(has(full_report("0", {seen(0)}), "CUDA reads these variables at its first use in a process"));
  CHECK(!has(full_report("0", {seen(0)}), differs));
  CHECK(has(full_report("0", {seen(0), seen(1)}), differs));
  CHECK(says(report("0", Seen{seen(0), seen(1)}), "\"0\" is device 0: A100, GPU-aa", "  device 1: A100, GPU-bb",
             differs));
  CHECK(says(report("0,0", Seen{seen(0)}), "\"0\" is named twice", "  device 0: A100, GPU-aa", differs));
  CHECK(has(full_report("0,1", {seen(0)}), differs));
  CHECK(has(full_report(nullptr, {seen(0)}), differs));
  CHECK(!has(report(nullptr, Seen{seen(0)}), differs));
  CHECK(has(report("GPU-aa", Seen{seen(1)}), differs));
  CHECK(!has(report("GPU-b", Seen{seen(1)}), differs));
  CHECK(!has(full_report("MIG-x,MIG-y", {{.uuid = "MIG-x", .name = "A100 MIG 1g.5gb", .bus_id = "0"}}), differs));
}

TEST_CASE("the report is there with any variables, with and without a device") {
  for (const char* variable : {"0", "", "abc", "GPU-", "MIG-"}) {
    const EnvironmentVariable set("CUDA_VISIBLE_DEVICES", variable);
    const EnvironmentVariable order("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    const std::string text = visible_devices_report();
    CAPTURE(text);
    CHECK(has(text, "CUDA_VISIBLE_DEVICES is "));
    CHECK(has(text, "CUDA_DEVICE_ORDER is \"PCI_BUS_ID\""));
    CHECK(has(text, fanout::cuda::is_available() ? " visible.\n" : "No device is visible: "));
    // A list that names a GPU differs from what is seen, if CUDA could be asked and sees none.
    if (fanout::cuda::detail::count_gpus().status == cudaErrorNoDevice && std::string(variable) == "0") {
      const bool named = has(text, "CUDA shows other devices than these variables name") ||
                         has(text, "which CUDA does not show: most likely there is no such GPU");
      CHECK(named);
    }
  }
}

TEST_CASE("a uuid and a bus id are written as nvidia-smi writes them") {
  cudaDeviceProp properties{};
  for (int i = 0; i < 16; ++i) properties.uuid.bytes[i] = static_cast<char>(0xf0 + i);
  properties.pciDomainID = 0x10;
  properties.pciBusID = 0x3b;
  properties.pciDeviceID = 2;
  const SeenDevice device = fanout::cuda::detail::seen_device(properties);
  CHECK(device.uuid == "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
  CHECK(device.bus_id == "0010:3b:02.0");
}
