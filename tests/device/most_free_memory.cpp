// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/device_source.hpp>
#include <fanout/device/most_free_memory.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/worker/registry.hpp>

#include "support/message_of.hpp"
#include "toy_device.hpp"

using fanout::DeviceSet;
using fanout::MostFreeMemory;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

/// As many devices as there are numbers, which are what is free of their memories.
class Roomy {
 public:
  explicit Roomy(int index)
      : worker_(&fanout::backend::registry().worker({.kind = "roomy", .index = index}, {}, false)) {}

  fanout::DeviceId id() const { return worker_->id(); }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return *worker_; }
  ToyDevice::Entered enter() const { return {}; }
  void synchronize() const {}
  std::size_t free_memory() const {
    ++asked;
    return free[static_cast<std::size_t>(worker_->id().index)];
  }
  static std::vector<Roomy> visible() {
    std::vector<Roomy> all;
    for (std::size_t i = 0; i < free.size(); ++i) all.push_back(Roomy(static_cast<int>(i)));
    return all;
  }
  friend bool operator==(const Roomy&, const Roomy&) = default;

  static inline std::vector<std::size_t> free;
  static inline int asked = 0;

 private:
  fanout::backend::Worker* worker_;
};

static_assert(fanout::DeviceSource<MostFreeMemory<Roomy>>);
static_assert(std::default_initializable<MostFreeMemory<Roomy>>);
static_assert(std::is_empty_v<MostFreeMemory<Roomy>>);
static_assert(std::is_same_v<decltype(MostFreeMemory<Roomy>{}.select()), DeviceSet<Roomy>>);

std::vector<int> selected(std::vector<std::size_t> free) {
  Roomy::free = std::move(free);
  std::vector<int> indices;
  for (const Roomy& device : MostFreeMemory<Roomy>{}.select()) indices.push_back(device.id().index);
  return indices;
}

}  // namespace

TEST_CASE("MostFreeMemory puts the device with the most free memory first, and all others behind it in order") {
  CHECK(selected({5}) == std::vector{0});
  CHECK(MostFreeMemory<Roomy>{}.select()[0] == Roomy(0));
  CHECK(selected({10, 30, 20}) == std::vector{1, 2, 0});
  CHECK(selected({1, 2, 3, 4, 5}) == std::vector{4, 3, 2, 1, 0});
  CHECK(selected({5, 4, 3}) == std::vector{0, 1, 2});
  CHECK(selected({0, std::size_t{80} << 30, 0, std::size_t{81} << 30}) == std::vector{3, 1, 0, 2});
}

TEST_CASE("MostFreeMemory leaves devices with equal memory in their order") {
  CHECK(selected({7, 7, 7}) == std::vector{0, 1, 2});
  CHECK(selected({1, 7, 1, 7}) == std::vector{1, 3, 0, 2});
}

TEST_CASE("MostFreeMemory asks each device once, and anew for each selection") {
  Roomy::asked = 0;
  CHECK(selected({1, 2, 3}) == std::vector{2, 1, 0});
  CHECK(Roomy::asked == 3);
  CHECK(selected({3, 2, 1}) == std::vector{0, 1, 2});
  CHECK(Roomy::asked == 6);
}

TEST_CASE("MostFreeMemory refuses a kind of which there is no device") {
  CHECK(says(message_of<fanout::InvalidDeviceId>([] { selected({}); }), "Invalid device id", "at least one device of",
             "Roomy"));
}
