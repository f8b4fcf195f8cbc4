// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the guide shows of GPUs, so that it compiles and does what is said there.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

#include <fanout/cuda.hpp>
#include <fanout/cuda/peer_report.hpp>
#include <fanout/cuda/visible/visible_devices_report.hpp>

#include "cuda/gpus.hpp"

namespace {

// [library]
struct Copied {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    // Any library that takes a stream: what it does there is in order with the rest of this shard's work.
    fanout::cuda::check(
        cudaMemcpyAsync(y.data(), x.data(), x.size() * sizeof(float), cudaMemcpyDeviceToDevice, ctx.stream().get()),
        "cudaMemcpyAsync");
    return y;
  }
};
// [/library]

// [own_stream]
struct Overlapped {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    const std::size_t bytes = x.size() * sizeof(float), half = bytes / 2;
    const auto copy = [&](std::size_t begin, std::size_t count, fanout::cuda::StreamRef stream) {
      fanout::cuda::check(
          cudaMemcpyAsync(reinterpret_cast<char*>(y.data()) + begin, reinterpret_cast<const char*>(x.data()) + begin,
                          count, cudaMemcpyDeviceToDevice, stream.get()),
          "cudaMemcpyAsync");
    };
    const fanout::cuda::Stream own(ctx.device());
    own.wait(ctx.stream());  // x and y are ready there first
    copy(0, half, own);
    copy(half, bytes - half, ctx.stream());  // at the same time
    ctx.stream().wait(own);                  // what the shard does next, and the call's end, come after both
    return y;
  }
};
// [/own_stream]

// [anywhere]
struct CopiedAnywhere {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    if constexpr (requires { ctx.stream(); }) {  // on a GPU
      fanout::cuda::check(
          cudaMemcpyAsync(y.data(), x.data(), x.size() * sizeof(float), cudaMemcpyDeviceToDevice, ctx.stream().get()),
          "cudaMemcpyAsync");
    } else {
      for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[i];
    }
    return y;
  }
};
// [/anywhere]

fanout::Tensor<float, 2> numbers(std::size_t rows, std::size_t columns) {
  fanout::Tensor<float, 2> x(rows, columns);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i);
  return x;
}

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: a model on all GPUs") {
  if (!fanout_test::has_gpus(1)) return;
  const auto input = numbers(30, 5);
  fanout::ParallelModel model{Copied{}, fanout::cuda_devices()};
  fanout::Tensor<float, 2> output = model(input);           // complete, in the memory of the first GPU
  fanout::Tensor<float, 2> copy = fanout::to_host(output);  // so that the host can read it
  REQUIRE(copy.size() == input.size());
  for (std::size_t i = 0; i < input.size(); ++i) CHECK(copy.data()[i] == input.data()[i]);
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: a forward with a stream of its own") {
  if (!fanout_test::has_gpus(1)) return;
  const auto input = numbers(301, 70);
  const fanout::ParallelModel model{Overlapped{}, fanout::cuda_devices(),
                                    fanout::Options{.output = fanout::DeviceId{"host"}}};
  for (unsigned seed = 1; seed < 30; ++seed) {
    if (stand_in_is_here()) stand_in_set_delays(seed);
    const auto output = model(input);
    REQUIRE(output.size() == input.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < input.size(); ++i) wrong += output.data()[i] == input.data()[i] ? 0 : 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: where results lie, and the next batch") {
  if (!fanout_test::has_gpus(1)) return;
  const auto input = numbers(30, 5);
  const auto use = [&](const fanout::Tensor<float, 2>& x) {
    REQUIRE(x.space() == fanout::host_memory);
    REQUIRE(x.extents() == input.extents());
    for (std::size_t i = 0; i < input.size(); ++i) CHECK(x.data()[i] == input.data()[i]);
  };
  // [output]
  fanout::ParallelModel model{Copied{}, fanout::cuda_devices(), fanout::Options{.output = fanout::DeviceId{"host"}}};
  fanout::Tensor<float, 2> output = model(input);  // complete, and the host's
  // [/output]
  use(output);
  const std::vector batches{input, input};
  // [async]
  auto first = model.async(batches[0]);   // does not wait
  auto second = model.async(batches[1]);  // its rows are copied while the first batch is computed
  use(first.get());                       // waits for the first batch alone
  use(second.get());
  // [/async]
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: GPUs and cores") {
  if (!fanout_test::has_gpus(1)) return;
  const auto input = numbers(30, 5);
  // [mixed]
  const auto devices = fanout::cuda_devices({0}) | fanout::host_devices(1);
  fanout::ParallelModel model{CopiedAnywhere{}, devices,
                              fanout::Options{.split = fanout::WeightedSplit{9, 1}}};  // of 30 rows 27 and 3
  // [/mixed]
  const auto copy = fanout::to_host(model(input));
  REQUIRE(copy.size() == input.size());
  for (std::size_t i = 0; i < input.size(); ++i) CHECK(copy.data()[i] == input.data()[i]);
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: which GPUs") {
  if (!fanout_test::has_gpus(4)) return;
  // [selection]
  auto all = fanout::cuda_devices();            // all that the process may use, in CUDA's order
  auto some = fanout::cuda_devices({0, 2, 3});  // by their numbers among these; the first is the main device
  auto pair = fanout::cuda_devices(2);          // the first two
  auto mixed = some | fanout::host_devices(1);  // with cores
  auto four = fanout::cuda_devices({.count = 4, .oversubscribe = true});  // four on as many GPUs as there are
  auto warned = fanout::cuda_devices(
      {.on_imbalance = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }});
  // [/selection]
  CHECK(all.size() >= 4);
  CHECK(some.size() == 3);
  CHECK(pair.size() == 2);
  CHECK(mixed.size() == 4);
  CHECK(four.size() == 4);
  CHECK(warned.size() == all.size());

  // [policies]
  using Gpu = fanout::CudaDevice;
  fanout::ParallelModel<Copied, fanout::AllVisible<Gpu>> same{Copied{}};
  fanout::ParallelModel<Copied, fanout::MostFreeMemory<Gpu>> freest_first{Copied{}};
  fanout::ParallelModel<Copied, fanout::Indices<Gpu, 0, 2>> two{Copied{}};
  // [/policies]
  CHECK(same(numbers(6, 2)).size() == 12);
  CHECK(freest_first(numbers(6, 2)).size() == 12);
  CHECK(two(numbers(6, 2)).size() == 12);
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: what is there") {
  // [ask]
  if (!fanout::cuda::is_available()) {
    std::printf("no GPU: %s\n", fanout::cuda::unavailable_reason().c_str());
  }
  for (int i = 0; i < fanout::cuda::device_count(); ++i) {
    const auto [major, minor] = fanout::cuda::device_capability(i);
    const auto memory = fanout::cuda::memory_info(i);
    std::printf("cuda:%d is a %s (sm_%d%d), %zu of %zu bytes free\n", i, fanout::cuda::device_name(i).c_str(), major,
                minor, memory.free, memory.total);
  }
  std::printf("%s%s", fanout::cuda::visible_devices_report().c_str(), fanout::cuda::peer_report().c_str());
  // [/ask]
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: streams and events") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout::CudaDevice device(0);
  // [streams]
  const fanout::cuda::Stream own(device);                // made here, destroyed at the end
  const fanout::cuda::StreamRef work = device.stream();  // where the device's work is done; lives on
  fanout::cuda::Event ready;
  own.record(ready);    // all that is in `own` by now
  work.wait(ready);     // later work of the device waits for that; this thread does not
  ready.synchronize();  // this thread waits
  // [/streams]
  CHECK(ready.is_done());

  // [native]
  cudaStream_t native = nullptr;
  {
    const fanout::cuda::DeviceGuard on_device(device.index());  // afterwards the thread is as it was
    fanout::cuda::check(cudaStreamCreate(&native), "cudaStreamCreate");
  }
  const fanout::cuda::StreamRef borrowed(native, device.index());  // yours
  borrowed.wait(work);
  const fanout::cuda::Stream owned = fanout::cuda::Stream::adopt(native, device.index());  // now fanout's to destroy
  // [/native]
  owned.synchronize();
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: memory") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout::CudaDevice device(0);
  // [memory]
  const fanout::Tensor<float, 2> batch = fanout::cuda::pinned<float>(1024, 64);  // in page-locked host memory
  const fanout::Tensor<float, 2> there = fanout::to(batch, device);              // a copy on the GPU
  const fanout::Tensor<float, 2> back = fanout::to_host(there);                  // and back

  std::printf("%zu bytes now, %zu at most, %zu kept\n", fanout::cuda::memory_allocated(0),
              fanout::cuda::max_memory_allocated(0), fanout::cuda::memory_reserved(0));
  fanout::cuda::empty_cache();  // what is kept and not used goes back to the GPU
  // [/memory]
  CHECK(back.size() == batch.size());
  CHECK(fanout::cuda::memory_allocated(0) >= there.size() * sizeof(float));
}

TEST_CASE_FIXTURE(fanout_test::Watched, "documentation: what goes wrong") {
  if (!fanout_test::has_gpus(1)) return;
  std::string said;
  const auto tell = [&](const char* text) { said += text; };
  const fanout::CudaDevice device(0);
  // [errors]
  try {
    fanout::to(fanout::Tensor<float, 1>(8), device);
  } catch (const fanout::OutOfMemory& error) {
    tell(error.what());  // how much was asked for, and how much was free
  } catch (const fanout::cuda::DeviceLost& error) {
    tell(error.what());  // no later call can mend it: end the process
  } catch (const fanout::cuda::CudaError& error) {
    tell(error.name());  // cudaErrorInvalidValue, say
  }
  // [/errors]
  CHECK(said.empty());

  const fanout::ParallelModel model{Copied{}, fanout::cuda_devices()};
  const auto input = numbers(30, 5);
  // [failures]
  try {
    model(input);
  } catch (const fanout::ReplicaError& error) {
    for (const fanout::Failure& failure : error.failures()) tell(to_string(failure.device).c_str());
    if (error.get_if<fanout::cuda::DeviceLost>() != nullptr) tell("and that one is lost");
  }
  // [/failures]
  CHECK(said.empty());
  CHECK_THROWS_WITH_AS(fanout::cuda::device_name(4711), doctest::Contains("Invalid device id"),
                       fanout::InvalidDeviceId);
}
