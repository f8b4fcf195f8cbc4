// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/runtime/numa_node.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/worker/registry.hpp>

#include "cuda/gpus.hpp"
#include "cuda/made_up_nodes.hpp"
#include "support/environment.hpp"

namespace detail = fanout::cuda::detail;
using fanout_test::EnvironmentVariable;
using fanout_test::TwoNodes;
using Numbers = std::vector<int>;

namespace {

const Numbers& all_cores() { return fanout::backend::registry().cores(); }

bool is_none(const detail::NumaNode& node) {
  return node.number == detail::NumaNode::none && node.cores == all_cores();
}

}  // namespace

TEST_CASE("lists of the kernel are read, and other text is an empty list") {
  CHECK(detail::numbers_in("0") == Numbers{0});
  CHECK(detail::numbers_in("0-2,8") == Numbers{0, 1, 2, 8});
  CHECK(detail::numbers_in("0-1,32-33,64") == Numbers{0, 1, 32, 33, 64});
  CHECK(detail::numbers_in("1048575") == Numbers{1048575});
  for (const char* text : {"", "-", "-1", "1-", "0-x", "x", " 1", "1 ", "2-1", "1,,2", ",", "0-3,x", "1048576",
                           "0-99999999999999999999", "4294967297", "0-10:2/4"}) {
    CAPTURE(text);
    CHECK(detail::numbers_in(text).empty());
  }
}

TEST_CASE("a machine has several nodes if cores are on several") {
  const fanout_test::FakeRoot machine;
  CHECK_FALSE(detail::has_several_nodes(machine.path()));
  const auto with = [&](const char* text) {
    machine.write("/sys/devices/system/node/has_cpu", text);
    return detail::has_several_nodes(machine.path());
  };
  CHECK(with("0-1\n"));
  CHECK(with("0,8\n"));
  CHECK_FALSE(with("0\n"));
  CHECK_FALSE(with(""));
  CHECK_FALSE(with("many\n"));
}

TEST_CASE("a PCI device's node has the process's cores there") {
  const TwoNodes machine;
  const std::string file = "/sys/bus/pci/devices/0000:af:00.0/numa_node";
  machine.write(file, "1\n");
  const detail::NumaNode second = detail::node_of_pci("0000:AF:00.0", machine.path());  // CUDA's letters are capital
  CHECK(second.number == 1);
  CHECK(second.cores == machine.second());
  machine.write(file, "0\n");
  const detail::NumaNode first = detail::node_of_pci("0000:AF:00.0", machine.path());
  if (machine.first().empty()) {
    CHECK(is_none(first));  // no core of the process is there
  } else {
    CHECK(first.number == 0);
    CHECK(first.cores == machine.first());
  }
}

TEST_CASE("a node that is unknown, has no cores or makes no sense is none") {
  const TwoNodes machine;
  const auto node = [&] { return detail::node_of_pci("0000:AF:00.0", machine.path()); };
  CHECK(is_none(node()));  // no such PCI device
  for (const char* text : {"-1\n", "", "\n", "one\n", "1 0\n", "0x1\n", "2\n", "99999999999\n"}) {
    CAPTURE(text);
    machine.write("/sys/bus/pci/devices/0000:af:00.0/numa_node", text);
    CHECK(is_none(node()));
  }
  machine.write("/sys/bus/pci/devices/0000:af:00.0/numa_node", "1\n");
  REQUIRE_FALSE(is_none(node()));
  for (const char* cores : {"1000000\n", "\n", "x\n", "0-\n"}) {
    CAPTURE(cores);
    machine.write("/sys/devices/system/node/node1/cpulist", cores);
    CHECK(is_none(node()));
  }
}

TEST_CASE("a GPU's node is found by its bus id, which makes no context") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const EnvironmentVariable pin("FANOUT_PIN", nullptr);
  const TwoNodes machine;
  const detail::GpuState& gpu = detail::gpu_at(0);
  const int contexts = stand_in_contexts();
  CHECK(is_none(detail::node_of_gpu(gpu, machine.path())));
  machine.put(1);
  const detail::NumaNode node = detail::node_of_gpu(gpu, machine.path());
  CHECK(node.number == 1);
  CHECK(node.cores == machine.second());
  machine.put(-1);
  CHECK(is_none(detail::node_of_gpu(gpu, machine.path())));
  CHECK(stand_in_contexts() == contexts);
}

TEST_CASE("CUDA is not asked on a machine with one node, with FANOUT_PIN=off, and for a lost GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const TwoNodes machine;
  machine.put(1);
  const detail::GpuState& gpu = detail::gpu_at(0);
  const long calls = stand_in_calls(nullptr);
  {
    const EnvironmentVariable pin("FANOUT_PIN", "off");
    CHECK(is_none(detail::node_of_gpu(gpu, machine.path())));
  }
  const EnvironmentVariable pin("FANOUT_PIN", "on");
  detail::losses[0].code.store(cudaErrorIllegalAddress);
  CHECK(is_none(detail::node_of_gpu(gpu, machine.path())));
  detail::losses[0].code.store(cudaSuccess);
  CHECK_FALSE(is_none(detail::node_of_gpu(gpu, machine.path())));
  CHECK(stand_in_calls(nullptr) == calls + 1);
  machine.write("/sys/devices/system/node/has_cpu", "1\n");
  CHECK(is_none(detail::node_of_gpu(gpu, machine.path())));
  CHECK(stand_in_calls(nullptr) == calls + 1);
}

TEST_CASE("a GPU whose bus id CUDA does not tell has no node, and no error is left behind") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const EnvironmentVariable pin("FANOUT_PIN", nullptr);
  const TwoNodes machine;
  machine.put(1);
  stand_in_fail("cudaDeviceGetPCIBusId", 1, 1, cudaErrorInvalidValue);
  CHECK(is_none(detail::node_of_gpu(detail::gpu_at(0), machine.path())));
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("the worker of a device runs on the process's cores of the GPU's node") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const EnvironmentVariable pin("FANOUT_PIN", nullptr);
  const TwoNodes machine;
  detail::GpuState& gpu = detail::gpu_at(0);
  machine.put(1);
  // Never destroyed, as those of streams_of().
  static detail::DeviceStreams* near = nullptr;
  static detail::DeviceStreams* anywhere = nullptr;
  near = new detail::DeviceStreams(gpu, 30, detail::node_of_gpu(gpu, machine.path()), nullptr);
  CHECK(near->worker().cores() == machine.second());
  CHECK_FALSE(near->worker().bound());  // it sleeps as before: no core is its own
  machine.put(-1);
  anywhere = new detail::DeviceStreams(gpu, 31, detail::node_of_gpu(gpu, machine.path()), nullptr);
  CHECK(anywhere->worker().cores() == all_cores());
}

TEST_CASE("an invalid FANOUT_PIN is an error of the device, and nothing else") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const TwoNodes machine;
  machine.put(1);
  {
    const EnvironmentVariable pin("FANOUT_PIN", "quite");
    CHECK(is_none(detail::node_of_gpu(detail::gpu_at(0), machine.path())));  // also used where nothing may throw
    const std::string message = fanout_test::message_of([] { fanout::CudaDevice(0); });
    CHECK(message.find("environment variable FANOUT_PIN: expected on or off") == 0);
  }
  CHECK_NOTHROW(fanout::CudaDevice(0));
}
