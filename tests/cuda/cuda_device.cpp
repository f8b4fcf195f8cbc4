// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fanout/cuda/cuda_device.hpp>

#include "cuda/gpus.hpp"
#include "device/device_conformance.hpp"

namespace {

/// All GPUs, as three devices each.
struct DeviceStreamsOfGpu : fanout::CudaDevice {
  using fanout::CudaDevice::CudaDevice;
  static std::vector<DeviceStreamsOfGpu> visible() {
    std::vector<DeviceStreamsOfGpu> devices;
    const int gpus = fanout::cuda::detail::count_gpus().count;
    for (int i = 0; i < 3 * gpus; ++i) devices.emplace_back(i % gpus, i / gpus);
    return devices;
  }
};

}  // namespace

FANOUT_TEST_DEVICE(fanout::CudaDevice, DeviceStreamsOfGpu);

namespace cuda = fanout::cuda;

TEST_CASE("devices on one GPU are told apart, have a stream and a worker each, and share its memory") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice first(0);
  const fanout::CudaDevice second(0, 1);
  CHECK(first == fanout::CudaDevice(0));
  CHECK(first != second);
  CHECK(to_string(first.id()) == "cuda:0");
  CHECK(to_string(second.id()) == "cuda:0#1");
  CHECK(second.index() == 0);
  CHECK(first.memory().space == second.memory().space);
  CHECK(&first.worker() != &second.worker());
  CHECK(first.stream() != second.stream());
  CHECK(first.stream() == fanout::CudaDevice(0).stream());
  CHECK(first.stream().get() != nullptr);
  const fanout::DeviceSet<fanout::CudaDevice> set({first, second});
  CHECK(set.size() == 2);
  CHECK(first.free_memory() > 0);
}

TEST_CASE("rule 43: a device that is not visible is an Invalid device id") {
  const int count = cuda::detail::count_gpus().count;
  for (const int index : {-1, count, cuda::detail::most_gpus, 100000}) {
    CHECK_THROWS_AS(static_cast<void>(fanout::CudaDevice(index)), fanout::InvalidDeviceId);
    const std::string message = fanout_test::message_of([&] { fanout::CudaDevice{index}; });
    CHECK(message.find("Invalid device id") == 0);
    CHECK(message.find("found " + std::to_string(index)) != std::string::npos);
    CHECK((message.find("of which there is none") != std::string::npos) == (count == 0));
    CHECK((message.find("(cuda:0") != std::string::npos) == (count > 0));
    CHECK((message.find("cuda:" + std::to_string(count - 1) + ")") != std::string::npos) == (count > 0));
  }
  if (!fanout_test::has_gpus(1)) return;
  CHECK_THROWS_AS(fanout::CudaDevice(0, -1), fanout::InvalidDeviceId);
}

TEST_CASE("listing the devices uses none, and entering one uses it only") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const pid_t child = ::fork();  // before a GPU is used in this process, if this test is the first
  REQUIRE(child >= 0);
  if (child == 0) {
    if (cuda::detail::forked_after_use()) ::_exit(77);
    const std::vector<fanout::CudaDevice> devices = fanout::CudaDevice::visible();
    bool right = stand_in_contexts() == 0 && stand_in_depth() == 0;
    {
      const auto entered = devices[1].enter();
      devices[1].stream().synchronize();
      devices[1].synchronize();
    }
    right = right && stand_in_contexts() == 1 && stand_in_has_context(1) == 1 && stand_in_depth() == 0;
    ::_exit(right ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK((WEXITSTATUS(status) == EXIT_SUCCESS || WEXITSTATUS(status) == 77));
}

TEST_CASE("synchronize waits for the device's work, and throws what failed of it") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice first(0);
  const fanout::CudaDevice second(1);
  fanout_test::Barrier barrier;
  bool done = false;
  auto work = [&done] { done = true; };
  fanout_test::call_in(first.stream(), barrier);
  fanout_test::call_in(first.stream(), work);
  std::thread opener([&barrier] { barrier.open(); });
  first.synchronize();
  CHECK(done);
  opener.join();

  auto fail = [] { stand_in_poison(0, cudaErrorLaunchFailure); };
  fanout_test::call_in(first.stream(), fail);
  const std::string message = fanout_test::message_of([&first] { first.synchronize(); });
  CHECK(message.find("device cuda:0 is lost: ") == 0);
  CHECK(message.find("cudaErrorLaunchFailure") != std::string::npos);
  CHECK(message.find("the process must be restarted to use it again") != std::string::npos);
  CHECK_THROWS_AS(first.enter(), cuda::DeviceLost);
  CHECK_THROWS_AS(first.synchronize(), cuda::DeviceLost);
  CHECK_NOTHROW(second.synchronize());  // the others go on
  CHECK_NOTHROW(second.enter());
}

TEST_CASE("who waits for a completion does not wait for what the device is given later") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const fanout::CudaDevice device(0);
  fanout_test::Barrier barrier;
  fanout::backend::Completion first;
  fanout::backend::Completion second;
  {
    const auto entered = device.enter();
    first = device.completion();
  }
  {
    const auto entered = device.enter();
    fanout_test::call_in(device.stream(), barrier);
    second = device.completion();
  }
  first.wait();
  CHECK_FALSE(device.stream().is_idle());
  barrier.open();
  second.wait();
  CHECK(device.stream().is_idle());
}
