// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/visible/visible_devices.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <fanout/base/error.hpp>

#include "support/message_of.hpp"

using fanout::cuda::gpu_of;
using fanout::cuda::parse_visible_devices;
using fanout::cuda::PhysicalGpu;
using fanout::cuda::VisibleDevices;
using fanout::cuda::VisibleToken;
using fanout_test::message_of;
using fanout_test::says;
using Fate = VisibleToken::Fate;

namespace {

/// `count` GPUs of one kind.
std::vector<PhysicalGpu> gpus(int count) {
  std::vector<PhysicalGpu> all;
  for (int i = 0; i < count; ++i) all.push_back({.uuid = "GPU-" + std::to_string(i) + "f", .name = "GPU", .speed = 1});
  return all;
}

/// GPUs of the original's tests of uuids: the first two differ in their ninth digit.
const std::vector<PhysicalGpu> with_uuids = {
    {.uuid = "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1"}, {.uuid = "GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293"},
    {.uuid = "GPU-e429a63e-c61c-4795-b757-5132caeb8e70"}, {.uuid = "GPU-eee1dfbc-0a0f-6ad8-5ff6-dc942a8b9d98"},
    {.uuid = "GPU-bbcd6503-5150-4e92-c266-97cc4390d04e"}, {.uuid = "GPU-472ea263-58d7-410d-cc82-f7fdece5bd28"},
    {.uuid = "GPU-e56257c4-947f-6a5b-7ec9-0f45567ccf4e"}, {.uuid = "GPU-1c20e77d-1c1a-d9ed-fe37-18b8466a78ad"}};

std::vector<int> visible(const char* variable, const std::vector<PhysicalGpu>& machine = gpus(8)) {
  return parse_visible_devices(variable, nullptr, machine).gpus;
}

std::vector<Fate> fates(const char* variable, const std::vector<PhysicalGpu>& machine = gpus(8)) {
  std::vector<Fate> all;
  for (const VisibleToken& token : parse_visible_devices(variable, nullptr, machine).tokens) all.push_back(token.fate);
  return all;
}

using Gpus = std::vector<int>;
struct Row {
  const char* variable;
  Gpus visible;
};

}  // namespace

TEST_CASE("rule 171: unset, all GPUs are visible, and with the empty text none is") {
  CHECK(visible(nullptr, gpus(3)) == Gpus{0, 1, 2});
  CHECK(visible(nullptr, gpus(0)).empty());
  CHECK(visible("", gpus(3)).empty());
  const VisibleDevices unset = parse_visible_devices(nullptr, nullptr, gpus(3));
  CHECK(!unset.variable.has_value());
  CHECK(unset.tokens.empty());
  const VisibleDevices empty = parse_visible_devices("", nullptr, gpus(3));
  CHECK(*empty.variable == "");
  CHECK(empty.tokens.empty());
}

TEST_CASE("rule 172: the list has an order, and devices are counted from 0 in it") {
  for (const auto& [variable, expected] : {Row{"3,2,0,1", {3, 2, 0, 1}}, {"0", {0}}, {"7", {7}}, {"2,0", {2, 0}}}) {
    CAPTURE(variable);
    CHECK(visible(variable) == expected);
  }
  const VisibleDevices devices = parse_visible_devices("3,2", nullptr, gpus(4));
  REQUIRE(devices.tokens.size() == 2);
  CHECK(devices.tokens[0].text == "3");
  CHECK(devices.tokens[0].device == 0);
  CHECK(devices.tokens[0].gpu == 3);
  CHECK(devices.tokens[1].device == 1);
  CHECK(devices.tokens[1].gpu == 2);
}

TEST_CASE("rule 173: the first token that names no GPU ends the list") {
  for (const auto& [variable, expected] : {Row{"0,2,-1,1", {0, 2}},
                                           {"0,abc,1", {0}},
                                           {"0,,1", {0}},
                                           {",0", {}},
                                           {"0,", {0}},
                                           {"one,two,3", {}},
                                           {"-1", {}},
                                           {"-1,0,1", {}},
                                           {" ", {}},
                                           {"-,0", {}},
                                           {"0,+,1", {0}},
                                           {"0,8,1", {0}},
                                           {"NoDevFiles", {}},
                                           {"4294967296,1", {}},
                                           {"18446744073709551616,1", {}},
                                           {"0,1000000001,1000000002", {0}},
                                           {"0,99999999999999999999,1", {0}}}) {
    CAPTURE(variable);
    CHECK(visible(variable) == expected);
  }
  CHECK(visible("1,5,0", gpus(2)) == Gpus{1});
  CHECK(fates("0,2,-1,1") == std::vector{Fate::device, Fate::device, Fate::negative, Fate::behind_end});
  CHECK(fates("0,abc,1") == std::vector{Fate::device, Fate::no_number, Fate::behind_end});
  CHECK(fates("0,") == std::vector{Fate::device, Fate::no_number});
  CHECK(fates("1,5,0", gpus(2)) == std::vector{Fate::device, Fate::out_of_range, Fate::behind_end});
}

TEST_CASE("rule 174: a GPU that is named twice makes the list empty") {
  for (const char* variable : {"0,1,2,1", "0,0", "1,+1", "0,-0", " 2,2", "0,9,0", "3,3,abc"}) {
    CAPTURE(variable);
    CHECK(visible(variable).empty());
  }
  CHECK(fates("0,1,2,1,3") == std::vector{Fate::emptied, Fate::repeated, Fate::emptied, Fate::repeated, Fate::emptied});
  CHECK(visible("0,abc,0") == Gpus{0});  // the second one is not read any more
  for (const VisibleToken& token : parse_visible_devices("0,1,1", nullptr, gpus(2)).tokens) {
    CHECK(token.device == -1);
    CHECK(token.gpu == -1);
  }
}

TEST_CASE("rule 175: a number is read as strtoul does, and text after its digits is ignored") {
  for (const auto& [variable, expected] : {Row{"1gpu2,2ampere", {1, 2}},
                                           {"+3", {3}},
                                           {"-0", {0}},
                                           {"0x1,1", {0, 1}},
                                           {"1.5", {1}},
                                           {"00,1", {0, 1}},
                                           {"007", {7}},
                                           {"0;1", {0}},
                                           {" 1 , 2 ", {1, 2}},
                                           {"\t3", {3}},
                                           {"1 2,3", {1, 3}},
                                           {"+-1", {}},
                                           {"- 1", {}}}) {
    CAPTURE(variable);
    CHECK(visible(variable) == expected);
  }
}

TEST_CASE("rule 176: in a text that begins with GPU- every token must, and no spaces are taken away") {
  for (const auto& [variable, expected] : {Row{"GPU-0f,GPU-1f", {0, 1}},
                                           {"GPU-0f, GPU-1f", {0}},
                                           {"GPU-0f ,GPU-1f", {}},
                                           {"GPU-2f,1", {2}},
                                           {"0,GPU-1f", {0}},
                                           {" GPU-1f", {}},
                                           {"gpu-1f", {}},
                                           {"GPU-0f,MIG-x", {0}},
                                           {"GPU-0f,", {0}}}) {
    CAPTURE(variable);
    CHECK(visible(variable) == expected);
  }
  CHECK(fates("GPU-0f, GPU-1f,GPU-2f") == std::vector{Fate::device, Fate::no_uuid, Fate::behind_end});
  CHECK(fates("0,GPU-1f") == std::vector{Fate::device, Fate::no_number});
}

TEST_CASE("rule 177: the beginning of a uuid names a GPU if it is that of one alone") {
  for (const auto& [variable, expected] : {Row{"GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1", {0}},
                                           {"GPU-e4,GPU-9e8d35e3", {2, 1}},
                                           {"GPU-e4,GPU-9e8d35e3,GPU-1", {2, 1, 7}},
                                           {"GPU-9e8d35e3,GPU-123,GPU-47", {1}},
                                           {"GPU-123,GPU-9e8d35e3", {}},
                                           {"GPU-9,GPU-e", {}},
                                           {"GPU-47,GPU-e,GPU-1", {5}},
                                           {"GPU-9942190a,GPU-99", {}},
                                           {"GPU-47,GPU-47", {}},
                                           {"GPU-47,GPU-zz,GPU-47", {}},
                                           {"GPU-", {}}}) {
    CAPTURE(variable);
    CHECK(visible(variable, with_uuids) == expected);
  }
  CHECK(fates("GPU-47,GPU-e,GPU-1", with_uuids) == std::vector{Fate::device, Fate::ambiguous, Fate::behind_end});
  CHECK(fates("GPU-47,GPU-f", with_uuids) == std::vector{Fate::device, Fate::unknown});
  CHECK(fates("GPU-1,GPU-47,GPU-472", with_uuids) == std::vector{Fate::emptied, Fate::repeated, Fate::repeated});
  CHECK(visible("GPU-", gpus(1)) == Gpus{0});
}

TEST_CASE("rule 178: CUDA shows only the first MIG instance, and its GPU is known if its name tells") {
  const VisibleDevices two = parse_visible_devices("MIG-a,MIG-b", nullptr, with_uuids);
  CHECK(two.gpus == Gpus{-1});
  REQUIRE(two.tokens.size() == 2);
  CHECK(two.tokens[0].text == "MIG-a");
  CHECK(two.tokens[0].device == 0);
  CHECK(two.tokens[1].fate == Fate::second_mig);
  CHECK(two.tokens[1].device == -1);
  const char* named = "MIG-GPU-e429a63e-c61c-4795-b757-5132caeb8e70/1/0";
  CHECK(visible(named, with_uuids) == Gpus{2});
  CHECK(visible("MIG-GPU-123/1/0", with_uuids) == Gpus{-1});
  CHECK(visible("MIG-", with_uuids) == Gpus{-1});
  CHECK(visible("MIG-a,MIG-a").empty());
  CHECK(fates("MIG-a,GPU-0f,MIG-b") == std::vector{Fate::device, Fate::no_mig, Fate::behind_end});
  CHECK(fates("0,MIG-a") == std::vector{Fate::device, Fate::no_number});
  CHECK(fates("MIG") == std::vector{Fate::no_number});
  // What comes before the slash counts to its last digit.
  const std::vector<PhysicalGpu> alike = {{.uuid = "GPU-47a"}, {.uuid = "GPU-47b"}};
  CHECK(visible("MIG-GPU-47a/1/0", alike) == Gpus{0});
  CHECK(visible("MIG-GPU-47b/1/0", alike) == Gpus{1});
  // Two instances of one GPU are not one GPU named twice.
  CHECK(fates("MIG-GPU-47/1/0,MIG-GPU-47/2/0", with_uuids) == std::vector{Fate::device, Fate::second_mig});
}

TEST_CASE("rule 179: numbers count from the fastest GPU, or in bus order with PCI_BUS_ID") {
  std::vector<PhysicalGpu> machine = gpus(4);
  machine[1].speed = 3;
  machine[3].speed = 5;
  const auto seen = [&](const char* variable, const char* order) {
    return parse_visible_devices(variable, order, machine).gpus;
  };
  CHECK(seen(nullptr, nullptr) == Gpus{3, 1, 0, 2});
  CHECK(seen(nullptr, "FASTEST_FIRST") == Gpus{3, 1, 0, 2});
  CHECK(seen(nullptr, "PCI_BUS_ID") == Gpus{0, 1, 2, 3});
  CHECK(seen("0,2", nullptr) == Gpus{3, 0});
  CHECK(seen("0,2", "PCI_BUS_ID") == Gpus{0, 2});
  CHECK(seen("2", "anything else") == Gpus{0});
  CHECK(seen("GPU-1f,GPU-0f", nullptr) == Gpus{1, 0});  // uuids need no order
  CHECK(parse_visible_devices("0", "PCI_BUS_ID", machine).by_bus_id);
  CHECK(!parse_visible_devices("0", "pci", machine).by_bus_id);
  CHECK(*parse_visible_devices("0", "pci", machine).order == "pci");
  CHECK(PhysicalGpu().speed == 0);  // so that GPUs of which nothing is said come last, in the order of the bus
}

TEST_CASE("rule 181: asking for a device that is not visible says so, with the variable's text") {
  const VisibleDevices devices = parse_visible_devices("3,2", nullptr, gpus(4));
  CHECK(gpu_of(devices, 0) == 3);
  CHECK(gpu_of(devices, 1) == 2);
  for (const int device : {2, 3, -1}) {
    const auto text = message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(gpu_of(devices, device)); });
    CHECK(says(text, "device " + std::to_string(device) + " is not visible (CUDA_VISIBLE_DEVICES=3,2)",
               "a number from 0 to 1"));
  }
  const auto unset = message_of<fanout::InvalidDeviceId>(
      [] { static_cast<void>(gpu_of(parse_visible_devices(nullptr, nullptr, gpus(1)), 1)); });
  CHECK(says(unset, "device 1 is not visible (CUDA_VISIBLE_DEVICES is unset)"));
  const auto none = message_of<fanout::InvalidDeviceId>(
      [] { static_cast<void>(gpu_of(parse_visible_devices("", nullptr, gpus(1)), 0)); });
  CHECK(says(none, "device 0 is not visible (CUDA_VISIBLE_DEVICES=)", "there is none"));
}

TEST_CASE("without known GPUs only the text of the variable counts") {
  const auto count = [](const char* variable) { return parse_visible_devices(variable, nullptr).gpus.size(); };
  CHECK(count(nullptr) == 0);
  CHECK(count("") == 0);
  CHECK(count("0,2,-1,1") == 2);
  CHECK(count("5,77,1") == 3);  // whether there is a GPU 77 is not written
  CHECK(count("0,1,0") == 0);
  CHECK(count("GPU-a,GPU-ab, GPU-c") == 2);
  CHECK(count("MIG-a,MIG-b") == 1);
  CHECK(parse_visible_devices("5,77", nullptr).gpus == Gpus{-1, -1});
}
