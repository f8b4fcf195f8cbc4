// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/cuda_devices.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/cuda/current_device.hpp>
#include <fanout/cuda/runtime/availability.hpp>
#include <fanout/device/first_available.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/device/most_free_memory.hpp>
#include <fanout/fanout.hpp>

#include "cuda/gpus.hpp"
#include "support/message_of.hpp"

using fanout::cuda_devices;
using fanout::CudaDevice;
using fanout::CudaDeviceOptions;
using fanout::DeviceSet;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::InvalidDeviceId;
using fanout_test::has_gpus;
using fanout_test::has_stand_in;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::Watched;

namespace {

template <class... Ds>
std::vector<std::string> names(const DeviceSet<Ds...>& devices) {
  std::vector<std::string> all;
  for (const fanout::DeviceId& id : devices.ids()) all.push_back(to_string(id));
  return all;
}

using Names = std::vector<std::string>;

/// A GPU of another size in place of the one with this index, for as long as it lives.
class OtherGpu {
 public:
  OtherGpu(int index, std::size_t memory, int multiprocessors)
      : index_(index),
        before_(fanout::cuda::detail::gpu_at(index).properties()),
        gpu_(fanout::cuda::detail::gpus[index].gpu.exchange(nullptr)) {
    stand_in_set_device(index, "other", memory, multiprocessors, 9, 0);
  }
  OtherGpu(const OtherGpu&) = delete;
  OtherGpu& operator=(const OtherGpu&) = delete;
  ~OtherGpu() {
    stand_in_set_device(index_, before_.name, before_.totalGlobalMem, before_.multiProcessorCount, before_.major,
                        before_.minor);
    fanout::cuda::detail::GpuState* other = fanout::cuda::detail::gpus[index_].gpu.exchange(gpu_);
    if (other == nullptr) return;
    delete &other->properties();
    for (auto* streams = other->all_streams().load(); streams != nullptr;)
      delete std::exchange(streams, streams->next());
    delete other;
  }

 private:
  int index_;
  cudaDeviceProp before_;
  fanout::cuda::detail::GpuState* gpu_;
};

template <class F>
std::string refusal(const F& f) {
  return message_of<InvalidDeviceId>([&] { static_cast<void>(f()); });
}

}  // namespace

TEST_CASE("cuda_devices are all visible GPUs in CUDA's order") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const auto devices = cuda_devices();
  CHECK(static_cast<int>(devices.size()) == fanout::cuda::device_count());
  for (std::size_t i = 0; i < devices.size(); ++i) CHECK(names(devices)[i] == "cuda:" + std::to_string(i));
  CHECK(devices.of_kind<0>() == CudaDevice::visible());
  CHECK(devices.ids() == fanout::AllVisible<CudaDevice>{}.select().ids());
}

TEST_CASE("cuda_devices of indices are these, in the order given") {
  if (!has_gpus(4)) return;
  const Watched watched;
  CHECK(names(cuda_devices({0, 2, 3})) == Names{"cuda:0", "cuda:2", "cuda:3"});
  CHECK(names(cuda_devices({3, 1})) == Names{"cuda:3", "cuda:1"});
  CHECK(names(cuda_devices({2})) == Names{"cuda:2"});
  CHECK(names(cuda_devices({0})) == Names{"cuda:0"});
  CHECK(names(cuda_devices(std::vector{1, 0})) == Names{"cuda:1", "cuda:0"});
  CHECK(names(cuda_devices(std::array<std::size_t, 2>{3, 2})) == Names{"cuda:3", "cuda:2"});
  CHECK(names(cuda_devices({.indices = {2, 1}})) == Names{"cuda:2", "cuda:1"});
  CHECK(names(cuda_devices({.indices = {2, 1, 0}, .count = 2})) == Names{"cuda:2", "cuda:1"});
  CHECK(names(cuda_devices(2)) == Names{"cuda:0", "cuda:1"});
  CHECK(names(fanout::Indices<CudaDevice, 3, 0>{}.select()) == Names{"cuda:3", "cuda:0"});
}

TEST_CASE("rule 43: an index that does not exist is an invalid device id") {
  const int none = fanout::cuda::device_count();
  CHECK(says(refusal([&] { return cuda_devices({none}); }), "Invalid device id", "found " + std::to_string(none)));
  CHECK(says(refusal([&] { return cuda_devices({-1}); }), "Invalid device id", "found -1"));
  CHECK(says(refusal([&] { return cuda_devices({.indices = {none}}); }), "Invalid device id"));
  CHECK(says(refusal([&] { return cuda_devices(std::vector<long>{1L << 40}); }), "Invalid device id"));
  CHECK(says(refusal([&] { return CudaDevice(none); }), "Invalid device id"));
}

TEST_CASE("an empty list and a count below 1 are an invalid device id") {
  CHECK(says(refusal([] { return cuda_devices(std::vector<int>{}); }), "Invalid device id"));
  CHECK(says(refusal([] { return cuda_devices({}); }), "Invalid device id"));
  CHECK(says(refusal([] { return cuda_devices({.count = -1}); }), "Invalid device id"));
  CHECK(says(refusal([] { return cuda_devices(0); }), "Invalid device id"));
}

TEST_CASE("without a GPU the error of cuda_devices says why and what to use instead") {
  if (fanout::cuda::is_available()) return;
  CHECK(CudaDevice::visible().empty());
  const std::string text = refusal([] { return cuda_devices(); });
  CHECK(says(text, "Invalid device id at cuda_devices", "at least one CUDA device", fanout::cuda::unavailable_reason(),
             "FirstAvailable"));
  CHECK(says(refusal([] { return fanout::MostFreeMemory<CudaDevice>{}.select(); }), "Invalid device id"));
}

TEST_CASE("a GPU that stands twice is refused unless it is asked for") {
  if (!has_gpus(1)) return;
  const Watched watched;
  CHECK(says(refusal([] {
               return cuda_devices({0, 0});
             }),
             "Invalid device id", "each GPU once", "cuda:0 again at position 1", ".oversubscribe"));
  CHECK(says(refusal([] { return cuda_devices({.indices = {0, 0}}); }), "each GPU once"));
  const int more = fanout::cuda::device_count() + 1;
  CHECK(says(refusal([&] { return cuda_devices({.count = more}); }), "at most " + std::to_string(more - 1) + " devices",
             "found " + std::to_string(more), ".oversubscribe"));
  CHECK(names(cuda_devices({.indices = {0, 0}, .oversubscribe = true})) == Names{"cuda:0", "cuda:0#1"});
  CHECK(names(cuda_devices({.indices = {0}, .count = 3, .oversubscribe = true})) ==
        Names{"cuda:0", "cuda:0#1", "cuda:0#2"});
  CHECK(names(cuda_devices({.count = 1, .oversubscribe = true})) == Names{"cuda:0"});
}

TEST_CASE("oversubscribed devices go around the GPUs that there are") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const int gpus = fanout::cuda::device_count();
  const auto devices = cuda_devices({.count = 4, .oversubscribe = true});
  REQUIRE(devices.size() == 4);
  for (int i = 0; i < 4; ++i) {
    const fanout::DeviceId expected{.kind = "cuda", .index = i % gpus, .instance = i / gpus};
    CHECK(devices.ids()[static_cast<std::size_t>(i)] == expected);
  }
  if (gpus != 2) return;
  CHECK(names(devices) == Names{"cuda:0", "cuda:1", "cuda:0#1", "cuda:1#1"});
  CHECK(names(cuda_devices({.indices = {1, 0, 1}, .count = 5, .oversubscribe = true})) ==
        Names{"cuda:1", "cuda:0", "cuda:1#1", "cuda:1#2", "cuda:0#1"});
}

TEST_CASE("selecting devices makes no context") {
  if (!has_stand_in(1)) return;
  const Watched watched;
  const int before = stand_in_contexts();
  static_cast<void>(cuda_devices());
  static_cast<void>(cuda_devices({.count = 3, .oversubscribe = true, .on_imbalance = [](std::string_view) {}}));
  CHECK(stand_in_contexts() == before);
}

TEST_CASE("MostFreeMemory takes the GPU with the most free memory as the main device") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const auto gibibytes = [](std::size_t n) { return n << 30; };
  stand_in_set_used_by_others(0, gibibytes(2));
  CHECK(names(fanout::MostFreeMemory<CudaDevice>{}.select())[0] != "cuda:0");
  CHECK(names(fanout::MostFreeMemory<CudaDevice>{}.select()).back() == "cuda:0");
  stand_in_set_used_by_others(0, 0);
  for (int i = 1; i < fanout::cuda::device_count(); ++i) stand_in_set_used_by_others(i, gibibytes(1));
  CHECK(names(fanout::MostFreeMemory<CudaDevice>{}.select())[0] == "cuda:0");
  for (int i = 1; i < fanout::cuda::device_count(); ++i) stand_in_set_used_by_others(i, 0);
}

TEST_CASE("rule 49: an imbalance is reported to the sink once for each selection") {
  if (!has_gpus(1)) return;
  const Watched watched;
  std::vector<std::string> warnings;
  const CudaDeviceOptions options{.on_imbalance = [&](std::string_view text) { warnings.emplace_back(text); }};
  static_cast<void>(cuda_devices(options));
  std::vector<fanout::cuda::GpuSize> sizes;
  for (const CudaDevice& device : cuda_devices()) {
    const auto& properties = fanout::cuda::detail::gpu_at(device.index()).properties();
    sizes.push_back({device.index(), properties.totalGlobalMem, properties.multiProcessorCount});
  }
  const std::string expected = fanout::cuda::imbalance_warning(sizes);
  CHECK(warnings.size() == (expected.empty() ? 0 : 1));
  if (!expected.empty()) CHECK(warnings[0] == expected);
}

TEST_CASE("rule 49: the sink is told of GPUs of different sizes only if they are selected") {
  if (!has_stand_in(2)) return;
  const Watched watched;
  const auto told = [](const std::vector<int>& indices) {
    std::vector<std::string> warnings;
    static_cast<void>(cuda_devices(
        {.indices = indices, .on_imbalance = [&](std::string_view text) { warnings.emplace_back(text); }}));
    return warnings;
  };
  const OtherGpu small(0, std::size_t{10} << 30, 100);
  const OtherGpu large(1, std::size_t{20} << 30, 100);
  CHECK(told({0}).empty());
  CHECK(told({1}).empty());
  const auto warnings = told({1, 0});
  REQUIRE(warnings.size() == 1);
  CHECK(says(warnings[0], "There is an imbalance", "exclude GPU 0", "memory or cores of GPU 1"));
  CHECK(told({0, 1}) == warnings);
}

TEST_CASE("FirstAvailable takes GPUs where there are some, and else cores") {
  const auto devices = fanout::FirstAvailable<CudaDevice, HostDevice>{}.select();
  if (fanout::cuda::is_available()) {
    CHECK(devices.of_kind<0>() == CudaDevice::visible());
    CHECK(devices.of_kind<1>().empty());
  } else {
    CHECK(devices.of_kind<0>().empty());
    CHECK(devices.of_kind<1>() == HostDevice::visible());
  }
}

TEST_CASE("GPUs and cores work in one set, in shards of their weights") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const auto devices = cuda_devices({0}) | host_devices(1);
  CHECK(names(devices) == Names{"cuda:0", "host:0"});
  const auto rows = [](fanout::Context auto& ctx, fanout::RowRange range) {
    return std::vector{to_string(fanout::DeviceId(ctx.device().id())) + " " + std::to_string(range.size())};
  };
  const fanout::ParallelModel model{rows, devices, {.split = fanout::WeightedSplit{3, 1}}};
  CHECK(model(fanout::Range(8)) == Names{"cuda:0 6", "host:0 2"});
}
