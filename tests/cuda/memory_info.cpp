// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/memory_info.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/availability.hpp>
#include <fanout/memory/storage.hpp>

#include "cuda/gpus.hpp"
#include "support/message_of.hpp"

using fanout::CudaDevice;
using fanout::cuda::empty_cache;
using fanout::cuda::max_memory_allocated;
using fanout::cuda::memory_allocated;
using fanout::cuda::memory_info;
using fanout::cuda::memory_reserved;
using fanout::cuda::reset_peak_memory;
using fanout_test::has_gpus;
using fanout_test::has_stand_in;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::Watched;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// Memory of a device for as long as it lives.
class Held {
 public:
  Held(const CudaDevice& device, std::size_t bytes)
      : device_(device),
        memory_(device.memory()),
        bytes_(bytes),
        data_(memory_.operations->allocate(memory_.space, bytes)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    memory_.operations->release(memory_.space, data_, bytes_, nullptr);
    device_.synchronize();
  }

 private:
  CudaDevice device_;
  fanout::backend::Memory memory_;
  std::size_t bytes_;
  void* data_;
};

}  // namespace

TEST_CASE("a default-constructed MemoryInfo is all zeros") {
  CHECK(fanout::cuda::MemoryInfo().free == 0);
  CHECK(fanout::cuda::MemoryInfo().total == 0);
}

TEST_CASE("rule 162: allocated, peak and reserved memory are reported") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const CudaDevice device(0);
  const std::size_t before = memory_allocated(0);
  {
    const Held held(device, 3 * mebibyte);
    CHECK(memory_allocated(0) >= before + 3 * mebibyte);
    CHECK(memory_reserved(0) >= memory_allocated(0));
  }
  CHECK(memory_allocated(device) == before);
  CHECK(max_memory_allocated(device) >= before + 3 * mebibyte);
  reset_peak_memory(0);
  CHECK(max_memory_allocated(0) == before);
  const Held held(device, mebibyte);
  CHECK(max_memory_allocated(0) >= before + mebibyte);
  CHECK(max_memory_allocated(0) < before + 3 * mebibyte);
}

TEST_CASE("rule 161: empty_cache releases cached memory and keeps allocations") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const CudaDevice device(0);
  { const Held held(device, 64 * mebibyte); }
  CHECK(memory_reserved(0) >= memory_allocated(0) + 64 * mebibyte);
  const std::size_t allocated = memory_allocated(0);
  SUBCASE("of one GPU") { empty_cache(0); }
  SUBCASE("of all") { empty_cache(); }
  CHECK(memory_reserved(0) < allocated + 64 * mebibyte);
  CHECK(memory_allocated(0) == allocated);
}

TEST_CASE("rule 164: free and total memory are those of the whole GPU") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const auto [free, total] = memory_info(0);
  CHECK(free > 0);
  CHECK(free <= total);
  const Held held(CudaDevice(0), 128 * mebibyte);
  CHECK(memory_info(0).free < total);
  CHECK(memory_info(CudaDevice(0)).total == total);
}

TEST_CASE("numbers of a pool that was not used are 0, and asking for them makes no context") {
  if (!has_stand_in(1)) return;
  const Watched watched;
  const int last = fanout::cuda::device_count() - 1;
  const int before = stand_in_contexts();
  const bool unused = stand_in_has_context(last) == 0;
  if (unused) {
    CHECK(memory_allocated(last) == 0);
    CHECK(max_memory_allocated(last) == 0);
    CHECK(memory_reserved(last) == 0);
  }
  reset_peak_memory(last);
  empty_cache();
  CHECK(stand_in_contexts() == before);
}

TEST_CASE("asking for the memory of a device that does not exist is an invalid device id") {
  const int none = fanout::cuda::device_count();
  const auto refused = [](const auto& f) { return says(message_of<fanout::InvalidDeviceId>(f), "Invalid device id"); };
  CHECK(refused([&] { static_cast<void>(memory_info(none)); }));
  CHECK(refused([&] { static_cast<void>(memory_allocated(none)); }));
  CHECK(refused([&] { static_cast<void>(max_memory_allocated(-1)); }));
  CHECK(refused([&] { static_cast<void>(memory_reserved(none)); }));
  CHECK(refused([&] { reset_peak_memory(none); }));
  CHECK(refused([&] { empty_cache(none); }));
}
