// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process that has used its GPUs forks: in the child whatever uses CUDA says so at once, models on cores work, and
// it ends as any process, with results of the parent's in its statics. The parent goes on.
#include <chrono>
#include <cstdlib>
#include <string>

#include <sys/wait.h>

#include "cuda/programs/expect.hpp"
#include "cuda/stand_in/stand_in.h"
#include "support/fork.hpp"

namespace cuda = fanout::cuda;
using fanout::CudaDevice;
using fanout_test::Copied;
using fanout_test::expect;

namespace {

using Tensor = fanout::Tensor<float, 2>;

/// From now on the stand-in looks at what is left when all that is made later has been destroyed.
const bool looks_last = stand_in_is_here() && stand_in_alive("streams") == 0;

/// Ends after main().
struct Kept {
  Tensor result;
  Tensor pinned;
  cuda::Event event;
} kept;

/// What it throws says what is wrong, whatever it is thrown in, and within a second.
template <class F>
void refused(const F& f, std::source_location where = std::source_location::current()) {
  const auto begin = std::chrono::steady_clock::now();
  std::string said;
  try {
    f();
  } catch (const std::exception& error) {
    said = error.what();
  }
  if (said.find("Cannot re-initialize CUDA in forked subprocess") == std::string::npos) {
    std::fprintf(stderr, "said \"%s\"\n", said.c_str());
    expect(false, where);
  }
  expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1), where);
}

}  // namespace

int main() {
  if (!fanout_test::can_fork) {
    std::printf("SKIPPED: %s\n", fanout_test::cannot_fork);
    return 77;
  }
  fanout_test::need_gpus(1);
  ::alarm(60);
  expect(looks_last == stand_in_is_here());
  const Tensor x = fanout_test::numbers(40);
  fanout::ParallelModel model{Copied{fanout::Tensor<float, 1>(3)}, fanout::cuda_devices()};
  const fanout::ParallelModel on_cores{Copied{fanout::Tensor<float, 1>(3)}, fanout::host_devices(3)};
  expect(fanout_test::equal(model(x, false), x));
  expect(fanout_test::equal(on_cores(x, false), x));
  const CudaDevice device(0);
  kept.result = model(x, false);
  kept.pinned = cuda::pin(x);
  device.stream().record(kept.event);

  std::fflush(nullptr);
  const pid_t child = ::fork();
  expect(child >= 0);
  if (child == 0) {
    ::alarm(20);
    refused([&] { model(x, false); });
    refused([&] { model.async(x, false).get(); });
    refused([&] { fanout::to_host(kept.result); });
    refused([&] { fanout::to(x, device); });
    refused([&] { fanout::to(kept.pinned, device); });
    refused([&] { device.synchronize(); });
    refused([&] { device.stream().synchronize(); });
    refused([&] { kept.event.synchronize(); });
    refused([&] { static_cast<void>(device.enter()); });
    refused([] { cuda::synchronize(0); });
    refused([] { static_cast<void>(cuda::memory_info(0)); });
    refused([] { static_cast<void>(cuda::can_access_peer(0, 0)); });
    refused([] { cuda::set_device(0); });
    refused([] { static_cast<void>(fanout::cuda_devices()); });
    refused([] { const cuda::Stream stream(0); });
    refused([&] {
      fanout::ParallelModel other{Copied{fanout::Tensor<float, 1>(3)}, fanout::DeviceSet<CudaDevice>({device})};
      other(x, false);
    });
    expect(!cuda::is_available());
    expect(cuda::unavailable_reason().find("Cannot re-initialize CUDA in forked subprocess") != std::string::npos);

    expect(fanout_test::equal(on_cores(x, false), x));
    const fanout::ParallelModel new_one{Copied{fanout::Tensor<float, 1>(3)}, fanout::host_devices(2)};
    expect(fanout_test::equal(new_one.async(x, false).get(), x));
    const fanout::ParallelModel<Copied, fanout::FirstAvailable<CudaDevice, fanout::HostDevice>> first{
        Copied{fanout::Tensor<float, 1>(3)}};
    expect(fanout_test::equal(first(x, false), x));
    kept.event = cuda::Event();
    std::exit(0);
  }
  int status = -1;
  expect(::waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "the child ended with status %d\n", status);
    return EXIT_FAILURE;
  }
  expect(fanout_test::equal(model(x, false), x));
  expect(fanout_test::equal(kept.result, x));
  std::puts("as it should be");
}
