// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/runtime/gpu_index.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <string>

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/availability.hpp>
#include <fanout/device/host_device.hpp>

#include "cuda/gpus.hpp"
#include "support/environment.hpp"
#include "support/message_of.hpp"

using fanout::cuda::GpuIndex;
using fanout_test::has_gpus;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::Watched;

static_assert(std::convertible_to<int, GpuIndex>);
static_assert(std::convertible_to<fanout::CudaDevice, GpuIndex>);
static_assert(!std::convertible_to<std::string, GpuIndex>);

TEST_CASE("a GPU is named by its index, by a device on it, or is the current one") {
  if (!has_gpus(1)) return;
  const Watched watched;
  CHECK(GpuIndex(0).get() == 0);
  CHECK(GpuIndex(fanout::CudaDevice(0)).get() == 0);
  CHECK(GpuIndex(fanout::CudaDevice(0, 1)).get() == 0);
  CHECK(GpuIndex().get() == 0);
  CHECK(GpuIndex(0).get_peer() == 0);
}

TEST_CASE("rule 156: an index below 0 or past the last GPU is an invalid device id, and so is no GPU at all") {
  for (const int index : {-1, -7, fanout::cuda::device_count(), 127, 128, 1'000'000}) {
    CAPTURE(index);
    const auto text = message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(GpuIndex(index).get()); });
    CHECK(says(text, "Invalid device id", "expected the index of a visible device", "found " + std::to_string(index)));
    const auto peer = message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(GpuIndex(index).get_peer()); });
    CHECK(says(peer, "Invalid peer device id", "expected the index of a visible device"));
  }
  const auto host = fanout::HostDevice::visible()[0];
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(GpuIndex(host).get()); }), "Invalid device id",
             "expected a CUDA device", "found host:0"));
}

TEST_CASE("rule 181: if CUDA_VISIBLE_DEVICES is set, a missing device is reported as not visible") {
  const int none = fanout::cuda::device_count();
  const auto refusal = [](int index) {
    return message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(GpuIndex(index).get()); });
  };
  const std::string words = "device " + std::to_string(none) + " is not visible (CUDA_VISIBLE_DEVICES=";
  {
    const fanout_test::EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", "0,1");
    CHECK(says(refusal(none), "Invalid device id", words + "0,1)"));
    CHECK(refusal(-1).find("is not visible") == std::string::npos);
  }
  const fanout_test::EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", nullptr);
  CHECK(refusal(none).find("is not visible") == std::string::npos);
}

TEST_CASE("rule 170: the current device of a machine without any is an error that says so") {
  if (fanout::cuda::is_available()) return;
  CHECK(says(message_of<fanout::InvalidDeviceId>([] { static_cast<void>(GpuIndex().get()); }),
             "No CUDA GPUs are available"));
}
