// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/device_info.hpp>

#include <doctest/doctest.h>

#include <string>

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/availability.hpp>

#include "cuda/gpus.hpp"
#include "support/message_of.hpp"

using fanout::cuda::can_access_peer;
using fanout::cuda::Capability;
using fanout::cuda::device_capability;
using fanout::cuda::device_name;
using fanout::cuda::device_properties;
using fanout_test::has_gpus;
using fanout_test::has_stand_in;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::Watched;

TEST_CASE("capabilities are compared by their major number first") {
  CHECK(Capability{9, 0} > Capability{8, 9});
  CHECK(Capability{8, 6} < Capability{8, 9});
  CHECK(Capability{7, 5} == Capability{7, 5});
}

TEST_CASE("rule 156: a GPU's name, capability and the rest come from one set of properties") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const cudaDeviceProp& properties = device_properties(0);
  CHECK(device_name(0) == std::string(properties.name));
  CHECK(!device_name().empty());
  CHECK(device_capability(fanout::CudaDevice(0)) == Capability{properties.major, properties.minor});
  CHECK(properties.multiProcessorCount > 0);
  CHECK(properties.totalGlobalMem > 0);
  CHECK(&device_properties() == &properties);
}

TEST_CASE("rule 156: asking for properties of a device that does not exist is an invalid device id") {
  for (const int index : {-1, fanout::cuda::device_count()}) {
    CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(device_properties(index)); }),
               "Invalid device id"));
    CHECK(
        says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(device_name(index)); }), "Invalid device id"));
    CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(device_capability(index)); }),
               "Invalid device id"));
  }
}

TEST_CASE("rule 157: a query for peers answers, or names the GPU that does not exist") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const int count = fanout::cuda::device_count();
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(can_access_peer(count, 0)); }),
             "Invalid device id"));
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(can_access_peer(0, count)); }),
             "Invalid peer device id"));
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] { static_cast<void>(can_access_peer(0, -1)); }),
             "Invalid peer device id"));
  CHECK(!can_access_peer(0, 0));
  if (!has_stand_in(2)) return;
  stand_in_set_peer(0, 1, 0);
  CHECK(!can_access_peer(0, 1));
  stand_in_set_peer(0, 1, 1);
  CHECK(can_access_peer(0, 1));
  CHECK(can_access_peer(1, 0));
}

TEST_CASE("asking for the peers of a lost GPU throws DeviceLost") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  fanout::cuda::detail::gpu_at(0).context();
  fanout::cuda::detail::note(cudaErrorIllegalAddress, 0);
  CHECK_THROWS_AS(static_cast<void>(can_access_peer(0, 1)), fanout::cuda::DeviceLost);
}
