// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fanout/device/device.hpp asks of a device, requirement by requirement. For a kind of device D:
//
//   #include <fanout/.../d.hpp>
//   #include "device_conformance.hpp"
//   FANOUT_TEST_DEVICE(D);
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include <fanout/device/all_visible.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/device_source.hpp>

#include "support/skip.hpp"

#define FANOUT_TEST_DEVICE(...) TEST_CASE_TEMPLATE_INVOKE(device_conformance, __VA_ARGS__)

namespace fanout_test {

struct CountedTask : fanout::detail::Task {
  explicit CountedTask(fanout::backend::Worker& worker) {
    prepare([](fanout::detail::Task& task) noexcept { ++static_cast<CountedTask&>(task).runs; });
    worker.post(*this);
  }
  int runs = 0;
};

}  // namespace fanout_test

TEST_CASE_TEMPLATE_DEFINE("a device does what its concept says", D, device_conformance) {
  static_assert(fanout::Device<D>);
  static_assert(fanout::DeviceSource<fanout::AllVisible<D>>);
  const std::vector<D> devices = D::visible();
  if (devices.empty()) {
    fanout_test::skip("there is no device of this kind");
    return;
  }

  SUBCASE("1. ids tell devices apart and never change") {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const fanout::DeviceId id = devices[i].id();
      CHECK(devices[i].id() == id);
      const D copy = devices[i];
      CHECK(copy == devices[i]);
      CHECK(fanout::DeviceId(copy.id()) == id);
      for (std::size_t j = 0; j < i; ++j) {
        CHECK(devices[j] != devices[i]);
        CHECK_FALSE(fanout::DeviceId(devices[j].id()) == id);
      }
    }
  }

  SUBCASE("2. copies have equal memory, in which work can be done") {
    for (const D& device : devices) {
      const fanout::backend::Memory memory = device.memory();
      const D copy = device;
      CHECK(fanout::backend::Memory(copy.memory()).space == memory.space);
      REQUIRE(memory.operations != nullptr);
      void* data = memory.operations->allocate(memory.space, 1000);
      REQUIRE(data != nullptr);
      memory.operations->clear(memory.space, data, 1000);
      memory.operations->release(memory.space, data, 1000, nullptr);
    }
  }

  SUBCASE("3. equal devices share one worker, which runs posted tasks or leaves them to be taken back") {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      fanout::backend::Worker& worker = devices[i].worker();
      const D copy = devices[i];
      CHECK(&copy.worker() == &worker);
      CHECK(worker.id() == fanout::DeviceId(devices[i].id()));
      for (std::size_t j = 0; j < i; ++j) CHECK(&devices[j].worker() != &worker);
      fanout_test::CountedTask task(worker);
      if (!worker.has_thread()) {
        CHECK(worker.take_back(task));
        task.run();
      }
      CHECK(task.wait(0, fanout::detail::fork_epoch()));
      CHECK(task.runs == 1);
    }
  }

  SUBCASE("4. a device may be entered on any thread, also nested, and 5. synchronized") {
    for (const D& device : devices) {
      const auto enter_nested = [&device, &devices] {
        [[maybe_unused]] const auto outer = device.enter();
        {
          [[maybe_unused]] const auto inner = devices.back().enter();
          devices.back().synchronize();
        }
        device.synchronize();
      };
      CHECK_NOTHROW(enter_nested());
      bool threw = true;
      std::thread([&] {
        try {
          enter_nested();
          threw = false;
        } catch (...) {
        }
      }).join();
      CHECK_FALSE(threw);
    }
  }

  SUBCASE("6. visible() keeps its order, and its devices make a set") {
    CHECK(D::visible() == devices);
    const fanout::DeviceSet<D> set = fanout::AllVisible<D>{}.select();
    REQUIRE(set.size() == devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) CHECK(set[i] == devices[i]);
  }

  if constexpr (requires(const D& device) { device.ran(std::size_t{1}); }) {
    SUBCASE("10. ran() is told of shards, with the device entered") {
      for (const D& device : devices) {
        [[maybe_unused]] const auto entered = device.enter();
        CHECK_NOTHROW(device.ran(0));
        CHECK_NOTHROW(device.ran(1000));
      }
    }
  }

  if constexpr (requires(const D& device) { device.time(); }) {
    SUBCASE("11. time() never goes back, and a completion brings the caller to the end of the device's work") {
      static_assert(std::is_same_v<decltype(devices[0].time()), std::int64_t>);
      for (const D& device : devices) {
        const std::int64_t before = device.time();
        std::int64_t ended = 0;
        fanout::backend::Completion completion;
        {
          [[maybe_unused]] const auto entered = device.enter();
          const std::int64_t given = device.time();
          CHECK(given >= before);
          if constexpr (requires { device.ran(std::size_t{1}); }) device.ran(1000);
          ended = device.time();
          CHECK(ended >= given);
          if constexpr (requires { device.completion(); }) completion = device.completion();
        }
        CHECK(device.time() >= before);
        if constexpr (requires { device.completion(); }) {
          completion.wait();
          CHECK(device.time() >= ended);
        }
      }
    }
  }
}
