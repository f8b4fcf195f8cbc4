// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel writes where it may not, which no call can mend: the model's call throws, later uses of the GPU say at once
// that it is lost, cores work on, and the process ends as any process, with results of the GPU in its statics.
#include <cstdlib>
#include <string>

#include "cuda/programs/expect.hpp"

#include <fanout/cuda/launch.cuh>

namespace cuda = fanout::cuda;
using fanout_test::expect;

namespace {

using Tensor = fanout::Tensor<float, 2>;

/// Doubles an element, or writes to an address that nobody has.
struct Twice {
  float* to;
  const float* from;
  bool breaks;
  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    float* const place = breaks ? reinterpret_cast<float*>(std::uintptr_t{64}) : to + i;
    *place = 2 * from[i];
  }
};

struct Doubles {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x, bool breaks) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    fanout::launch(ctx, x.size(), Twice{y.data(), x.data(), breaks});
    return y;
  }
};

struct Kept {
  Tensor result;
  cuda::Event event;
} kept;

template <class F>
bool says_lost(const F& f) {
  try {
    f();
  } catch (const cuda::DeviceLost& error) {
    return error.index() == 0 && error.code() == cudaErrorIllegalAddress;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "said \"%s\"\n", error.what());
  }
  return false;
}

}  // namespace

int main() {
  fanout_test::need_gpus(1);
  ::alarm(60);
  const Tensor x = fanout_test::numbers(100);
  Tensor wanted = x;
  for (float& value : wanted) value *= 2;
  const fanout::ParallelModel model{Doubles{}, fanout::cuda_devices({.count = 2, .oversubscribe = true})};
  const fanout::ParallelModel on_cores{Doubles{}, fanout::host_devices(2)};
  const fanout::CudaDevice device(0);
  kept.result = model(x, false);
  device.stream().record(kept.event);
  expect(fanout_test::equal(kept.result, wanted));

  bool thrown = false;
  try {
    model(x, true);
  } catch (const fanout::ReplicaError& error) {
    const auto* lost = error.get_if<cuda::DeviceLost>();
    thrown = lost != nullptr && lost->code() == cudaErrorIllegalAddress;
    std::puts(error.what());
  }
  expect(thrown);
  expect(says_lost([&] { model(x, false); }));
  expect(says_lost([&] { model.async(x, false).get(); }));
  expect(says_lost([&] { fanout::to_host(kept.result); }));
  expect(says_lost([&] { fanout::to(x, device); }));
  expect(says_lost([&] { device.synchronize(); }));
  expect(says_lost([] { cuda::empty_cache(); }));
  expect(says_lost([] { const cuda::Stream stream(0); }));
  expect(fanout_test::equal(on_cores(x, false), wanted));
  std::puts("as it should be");
}
