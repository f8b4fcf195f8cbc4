// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/simulated/simulated_memory.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/base/error.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/simulated/simulated_devices.hpp>

#include "support/message_of.hpp"

using fanout::simulated_devices;
using fanout::Tensor;
using fanout::to;
using fanout::to_host;
using fanout::backend::Transfer;
using namespace std::chrono_literals;

namespace {

Tensor<float, 1> counted(std::size_t size) {
  Tensor<float, 1> tensor(size);
  std::iota(tensor.begin(), tensor.end(), 1.0F);
  return tensor;
}

}  // namespace

TEST_CASE("a copy by a thread that has entered nothing moves the time of the device and that of the simulation") {
  const auto devices = simulated_devices({{.bandwidth = 1e9, .latency = 2us}, {}});
  const Tensor<float, 1> x = counted(100);
  const auto there = to(x, devices[0]);
  CHECK(there.space() == devices[0].memory().space);
  CHECK(devices[0].time() == 2'400);
  const auto back = to_host(there);
  CHECK(back.space() == fanout::host_memory);
  CHECK(back == x);
  CHECK(devices[0].time() == 4'800);
  CHECK(devices[1].time() == 4'800);
}

TEST_CASE("a copy by a thread that has entered the device moves the device's time only") {
  const auto devices = simulated_devices({{.bandwidth = 1e9}, {}});
  const Tensor<float, 1> x = counted(100);
  Tensor<float, 1> there;
  {
    const auto entered = devices[0].enter();
    there = to(x, devices[0]);
    CHECK(devices[0].time() == 400);
    CHECK(to_host(there) == x);
    CHECK(devices[0].time() == 800);
  }
  CHECK(devices[0].time() == 0);
  CHECK(to_host(there) == x);  // begins when the device's earlier work has ended
  CHECK(devices[0].time() == 1'200);
}

TEST_CASE("a copy between two devices keeps both busy for as long as the slower link takes") {
  const auto devices = simulated_devices({{.bandwidth = 1e9, .latency = 5us}, {.bandwidth = 1e8, .latency = 1us}, {}});
  const Tensor<float, 1> x = counted(100);
  const auto first = to(x, devices[0]);
  CHECK(devices[0].time() == 5'400);
  const auto second = to(first, devices[1]);
  CHECK(devices[0].time() == 10'800);  // 5.4 us on one link, 5 us on the other: they run at the same time
  const Tensor<float, 1> y = counted(1000);
  const auto third = to(y, devices[1]);
  CHECK(devices[0].time() == 51'800);
  {
    const auto entered = devices[0].enter();
    const auto fourth = to(third, devices[0]);
    CHECK(devices[0].time() == 92'800);
    CHECK(fourth.data()[999] == 1000);
  }
  {
    const auto entered = devices[1].enter();
    CHECK(devices[1].time() == 92'800);
  }
  const auto entered = devices[2].enter();
  CHECK(devices[2].time() == 51'800);
  CHECK(to_host(second) == x);
}

TEST_CASE("a copy between the devices of two simulations is charged to each on its own clock") {
  const auto one = simulated_devices({{.bandwidth = 1e9}});
  const auto other = simulated_devices({{.bandwidth = 1e8}});
  const auto x = to(counted(100), one[0]);
  const auto y = to(x, other[0]);
  CHECK(one[0].time() == 800);
  CHECK(other[0].time() == 4'000);
  CHECK(to_host(y) == counted(100));
}

TEST_CASE("several copies go over the links of several devices at the same time") {
  const auto devices = simulated_devices({{.bandwidth = 1e9}, {.bandwidth = 1e9}, {.bandwidth = 5e8}});
  std::vector<Tensor<float, 1>> parts;
  for (const auto& device : devices) parts.push_back(to(counted(100), device));
  CHECK(devices[0].time() == 1'600);
  Tensor<float, 1> all(300);
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < 3; ++i) {
    transfers.push_back({all.data() + 100 * i, parts[i].space(), parts[i].data(), 400});
  }
  fanout::backend::transfer_all(fanout::backend::Memory{}, transfers.data(), transfers.size());
  CHECK(devices[0].time() == 1'600 + 800);
  for (std::size_t i = 0; i < 3; ++i) CHECK(all[100 * i + 99] == 100);

  // Into the memory of one device they take turns on its link.
  Tensor<float, 1> there = Tensor<float, 1>::uninitialized({300}, devices[0].memory());
  transfers.clear();
  for (std::size_t i = 0; i < 3; ++i) {
    transfers.push_back({there.data() + 100 * i, parts[i].space(), parts[i].data(), 400});
  }
  fanout::backend::transfer_all(devices[0].memory(), transfers.data(), transfers.size());
  CHECK(devices[0].time() == 2'400 + 400 + 800);
  CHECK(to_host(there) == all);
}

TEST_CASE("copies inside of a device's memory take no time, but wait for the device") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}});
  const auto x = to(counted(10), devices[0]);
  {
    const auto entered = devices[0].enter();
    devices[0].ran(7);
    const Tensor<float, 1> copy = x;
    CHECK(copy.space() == x.space());
    CHECK(devices[0].time() == 7'000);
  }
  CHECK(devices[0].time() == 0);
  const Tensor<float, 1> copy = x;
  CHECK(devices[0].time() == 7'000);
  CHECK(copy == counted(10));
  const Tensor<float, 1> zeros({5}, devices[0].memory());
  CHECK(zeros == Tensor<float, 1>(5));
}

TEST_CASE("memory of a device is limited, and comes back") {
  const auto devices = simulated_devices({{.memory = 1000}});
  CHECK(devices[0].free_memory() == 1000);
  {
    const auto x = to(counted(200), devices[0]);
    CHECK(devices[0].free_memory() == 200);
    CHECK(fanout_test::says(fanout_test::message_of<fanout::OutOfMemory>([&] { to(counted(51), devices[0]); }),
                            "out of memory of " + to_string(devices[0].id()), "at most 200 bytes", "found 204"));
    CHECK(devices[0].free_memory() == 200);
    const auto rest = to(counted(50), devices[0]);
    CHECK(devices[0].free_memory() == 0);
  }
  CHECK(devices[0].free_memory() == 1000);
}

TEST_CASE("the host reads and writes the memory of a simulated device in place") {
  const auto devices = simulated_devices({{}});
  auto x = to(counted(6), devices[0]);
  x(2) = 30;
  CHECK(x[2] == 30);
  CHECK(std::as_const(x)(5) == 6);
  CHECK(x.values()[1] == 2);
  CHECK(x != counted(6));
  CHECK(std::accumulate(x.begin(), x.end(), 0.0F) == 48);
  CHECK_THROWS_AS(x(6), fanout::InvalidArgument);
}

TEST_CASE("tensors outlive the devices") {
  Tensor<float, 1> x;
  {
    const auto devices = simulated_devices({{}});
    x = to(counted(3), devices[0]);
  }
  CHECK(x(2) == 3);
  CHECK(to_host(x) == counted(3));
}
