// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/runtime/availability.hpp>

#include <doctest/doctest.h>

#include <string>

#include <fanout/base/error.hpp>
#include <fanout/cuda/current_device.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>

#include "cuda/gpus.hpp"
#include "support/environment.hpp"
#include "support/fork.hpp"
#include "support/message_of.hpp"

using fanout::cuda::device_count;
using fanout::cuda::is_available;
using fanout::cuda::unavailable_reason;
using fanout_test::has_stand_in;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::Watched;

namespace {

/// Lets the next question for the number of devices fail, as if CUDA had not been used yet.
class NothingThere {
 public:
  explicit NothingThere(int status) : known_(fanout::cuda::detail::known_count.exchange(0)) {
    stand_in_fail("cudaGetDeviceCount", 1, 1000, status);
  }
  NothingThere(const NothingThere&) = delete;
  NothingThere& operator=(const NothingThere&) = delete;
  ~NothingThere() {
    stand_in_no_failures();
    fanout::cuda::detail::known_count.store(known_);
  }

 private:
  int known_;
};

}  // namespace

TEST_CASE("rule 151: whether CUDA is available is said without throwing, and if not, why") {
  static_assert(noexcept(is_available()));
  static_assert(noexcept(device_count()));
  CHECK(is_available() == (device_count() > 0));
  CHECK(is_available() == unavailable_reason().empty());
}

TEST_CASE("rules 151 and 152: without a driver or a GPU there are 0 devices, and each query asks again") {
  if (!has_stand_in(1)) return;
  const Watched watched;
  const int count = device_count();
  for (const cudaError_t status : {cudaErrorInsufficientDriver, cudaErrorStubLibrary, cudaErrorNoDevice,
                                   cudaErrorInitializationError, cudaErrorUnknown, cudaErrorSystemDriverMismatch}) {
    const NothingThere failing(status);
    CAPTURE(status);
    CHECK(!is_available());
    CHECK(device_count() == 0);
    CHECK(says(unavailable_reason(), cudaGetErrorName(status)));
    if (status == cudaErrorInsufficientDriver) {
      CHECK(says(unavailable_reason(), "the driver is too old, or there is none"));
      CHECK(says(message_of<fanout::InvalidDeviceId>([] { fanout::cuda::current_device(); }),
                 "No CUDA GPUs are available", "the driver is too old, or there is none"));
    }
    stand_in_no_failures();
    CHECK(device_count() == count);
    CHECK(unavailable_reason().empty());
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("the reason why no device is visible tells of the variable that hides them") {
  if (!has_stand_in(1)) return;
  const Watched watched;
  const NothingThere failing(cudaErrorNoDevice);
  {
    const fanout_test::EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", "-1");
    CHECK(says(unavailable_reason(), "CUDA_VISIBLE_DEVICES is \"-1\""));
  }
  const fanout_test::EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", nullptr);
  CHECK(unavailable_reason().find("CUDA_VISIBLE_DEVICES") == std::string::npos);
}

TEST_CASE("rule 158: in the child of a process that has used CUDA it is not available, and the reason is said") {
  if (!fanout_test::has_gpus(1)) return;
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  CHECK(fanout_test::in_child([] {
          if (is_available() || device_count() != 0) return 1;
          return says(unavailable_reason(), "Cannot re-initialize CUDA in forked subprocess") ? 0 : 2;
        }) == 0);
}
