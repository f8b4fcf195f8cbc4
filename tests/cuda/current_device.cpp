// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/current_device.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/availability.hpp>

#include "cuda/gpus.hpp"
#include "support/message_of.hpp"

using fanout::cuda::current_device;
using fanout::cuda::DeviceGuard;
using fanout::cuda::set_device;
using fanout::cuda::synchronize;
using fanout_test::has_gpus;
using fanout_test::has_stand_in;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::Watched;

namespace {

/// Runs f() in a thread that has never used CUDA.
template <class F>
void in_new_thread(const F& f) {
  std::thread(f).join();
}

}  // namespace

TEST_CASE("rule 153: the current device is 0 until another one is set, in each thread on its own") {
  if (!has_gpus(2)) return;
  const Watched watched;
  in_new_thread([] {
    CHECK(current_device() == 0);
    set_device(1);
    CHECK(current_device() == 1);
    in_new_thread([] { CHECK(current_device() == 0); });
    set_device(fanout::CudaDevice(0));
    CHECK(current_device() == 0);
  });
}

TEST_CASE("rule 153: asking for the current device makes no context") {
  if (!has_stand_in(1)) return;
  const Watched watched;
  in_new_thread([] {
    const int before = stand_in_contexts();
    CHECK(current_device() == 0);
    CHECK(stand_in_contexts() == before);
    CHECK(stand_in_current() == -1);
  });
}

TEST_CASE("rule 154: a device that does not exist cannot be set, nor can a negative index") {
  for (const int index : {-1, fanout::cuda::device_count(), 500}) {
    CHECK(says(message_of<fanout::InvalidDeviceId>([&] { set_device(index); }), "Invalid device id"));
    CHECK(says(message_of<fanout::InvalidDeviceId>([&] { synchronize(index); }), "Invalid device id"));
  }
}

TEST_CASE("rule 155: a guard restores the previous current device") {
  if (!has_gpus(2)) return;
  const Watched watched;
  in_new_thread([] {
    set_device(1);
    {
      const DeviceGuard guard(0);
      CHECK(current_device() == 0);
      {
        const DeviceGuard inner(1);
        CHECK(current_device() == 1);
        set_device(0);  // what is set within a guard ends with it
      }
      CHECK(current_device() == 0);
      const auto entered = fanout::CudaDevice(1).enter();
      CHECK(current_device() == 1);
    }
    CHECK(current_device() == 1);
  });
}

TEST_CASE("rule 170: synchronize waits for all streams of a GPU, whoever made them") {
  if (!has_gpus(1)) return;
  const Watched watched;
  cudaStream_t stream = nullptr;
  std::atomic<bool> done = false;
  {
    const DeviceGuard guard(0);
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    const auto sleep = [](void* flag) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      static_cast<std::atomic<bool>*>(flag)->store(true);
    };
    REQUIRE(cudaLaunchHostFunc(stream, sleep, &done) == cudaSuccess);
  }
  synchronize(0);
  CHECK(done);
  const DeviceGuard guard(0);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("synchronize leaves a GPU alone that the process has not used") {
  if (!has_stand_in(1)) return;
  const Watched watched;
  const int last = fanout::cuda::device_count() - 1;
  const int before = stand_in_contexts();
  const bool used = stand_in_has_context(last) != 0;
  in_new_thread([&] {
    synchronize(last);
    CHECK(stand_in_current() == -1);
  });
  CHECK((stand_in_has_context(last) != 0) == used);
  CHECK(stand_in_contexts() == before);
}
