// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// statics [unloading|lost]
//
// A process ends with results, models, pending calls, streams and events in statics, which are destroyed after main():
// as it is, when the runtime has been shut down before them, and after a GPU was lost.
#include <cstdlib>
#include <optional>

#include "cuda/programs/expect.hpp"
#include "cuda/stand_in/stand_in.h"

namespace cuda = fanout::cuda;
using fanout::CudaDevice;
using fanout_test::Copied;
using fanout_test::expect;

namespace {

using Tensor = fanout::Tensor<float, 2>;
using Model = fanout::ParallelModel<Copied, fanout::DeviceSet<CudaDevice>>;

/// From now on the stand-in looks at what is left when all that is made later has been destroyed.
const bool looks_last = stand_in_is_here() && stand_in_alive("streams") == 0;

/// Made before anything of CUDA's, and so destroyed after what CUDA destroys at the end.
struct Kept {
  Tensor input = fanout_test::numbers(100);
  Tensor result;
  Tensor pinned;
  std::optional<Model> model;
  std::optional<fanout::Pending<Tensor>> pending;
  std::optional<cuda::Stream> stream;
  cuda::Event event;
} first;

/// Made after it, and so destroyed before.
Kept& late() {
  static Kept second;
  return second;
}

void fill(Kept& kept) {
  kept.model.emplace(Copied{fanout::Tensor<float, 1>(5)}, fanout::cuda_devices());
  kept.result = (*kept.model)(kept.input, false);
  expect(fanout_test::equal(kept.result, kept.input));
  kept.pinned = cuda::pin(kept.input);
  static_cast<void>(fanout::to(kept.pinned, CudaDevice(0)));
  kept.pending.emplace(kept.model->async(kept.input, false));
  kept.stream.emplace(0);
  kept.stream->record(kept.event);
}

}  // namespace

int main(int argc, char** argv) {
  fanout_test::need_gpus(1);
  ::alarm(60);
  expect(looks_last == stand_in_is_here());
  fill(first);
  fill(late());
  // The first function to run at exit, since it is registered last.
  if (fanout_test::is_mode(argc, argv, "unloading")) {
    if (!stand_in_is_here()) return 77;
    std::atexit([] { stand_in_set_unloading(1); });
  }
  if (fanout_test::is_mode(argc, argv, "lost")) {
    if (!stand_in_is_here()) return 77;
    stand_in_poison(0, cudaErrorIllegalAddress);
    bool lost = false;
    try {
      cuda::synchronize(0);
    } catch (const cuda::DeviceLost&) {
      lost = true;
    }
    expect(lost);
  }
  std::puts("as it should be");
}
