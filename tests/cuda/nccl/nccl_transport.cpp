// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/cuda.hpp>
#include <fanout/cuda/nccl/nccl_transport.hpp>
#include <fanout/memory/transfer.hpp>

#include "cuda/gpus.hpp"
#include "cuda/nothing_checked.hpp"
#include "cuda/stand_in/stand_in.h"

using fanout::Context;
using fanout::cuda_devices;
using fanout::CudaDevice;
using fanout::Options;
using fanout::ParallelModel;
namespace cuda = fanout::cuda;

namespace {

/// What all shards' GPUs hold is added up there, and each shard tells what it has then.
struct Adds {
  float forward(Context auto& ctx, int) const {
    const auto own = fanout::empty<float>(ctx, 1000);
    const std::vector<float> here(1000, static_cast<float>(ctx.rank() + 1));
    fanout::backend::transfer(ctx.device().memory(), own.data(), fanout::host_memory, here.data(),
                              here.size() * sizeof(float));
    auto ranks = ctx.communicator();
    {
      const auto group = ranks.group();
      ranks.all_reduce(own.rows({0, 500}));
      ranks.broadcast(own.rows({500, 1000}), 1);
    }
    std::vector<float> there(1000);
    fanout::backend::transfer({}, there.data(), own.space(), own.data(), there.size() * sizeof(float));
    return there[0] + there[499] + 100 * there[999];
  }
};

/// The GPU of one rank is lost before that rank's part of a collective, for which the other GPUs then wait.
struct LosesGpu {
  enum After { nothing, read, barrier, again };

  std::size_t rank;
  After after = nothing;
  bool before_start = false;

  float forward(Context auto& ctx, int) const {
    const auto own = fanout::empty<float>(ctx, 1000);
    if (ctx.rank() == rank) {
      static constexpr auto lose = [](int gpu) { stand_in_poison(gpu, cudaErrorLaunchFailure); };
      static const auto lose_in_order = [](void* gpu) { lose(*static_cast<const int*>(gpu)); };
      static int gpu = 0;
      gpu = ctx.device().index();
      if (before_start) {
        lose(gpu);
      } else {
        cuda::check(::cudaLaunchHostFunc(ctx.stream().get(), lose_in_order, &gpu), "cudaLaunchHostFunc");
      }
    }
    auto ranks = ctx.communicator();
    ranks.all_reduce(own);
    if (after == barrier && ctx.rank() == rank) ranks.barrier();
    float there = 0;
    if (after != nothing) fanout::backend::transfer({}, &there, own.space(), own.data(), sizeof there);
    if (after == barrier && ctx.rank() != rank) ranks.barrier();
    if (after == again) ranks.all_reduce(own);
    return there;
  }
};

/// Calls the model, by one way or another.
enum class Called { at_once, by_async, and_dropped, by_deadline };

template <class Model>
void call(const Model& model, Called called) {
  if (called == Called::by_async) {
    auto pending = model.async(fanout::on_all(), 1);
    pending.get();
  } else if (called == Called::and_dropped) {
    const auto pending = model.async(fanout::on_all(), 1);
  } else {
    model(fanout::on_all(), 1);
  }
}

/// Loses the GPU of a rank in a call, and looks at what the call throws. If a rank waited for it in vain, the stand-in
/// would report that as misuse.
void lose_gpu(const LosesGpu& loses, Called called) {
  const fanout_test::Watched watched;
  Options options{.collectives = fanout::nccl_collectives()};
  if (called == Called::by_deadline) options.deadline = std::chrono::minutes(10);
  ParallelModel{Adds{}, cuda_devices(), options}(fanout::on_all(), 1);  // makes communicators
  const ParallelModel model{loses, cuda_devices(), options};
  bool threw = false;
  try {
    call(model, called);
  } catch (const fanout::ReplicaError& error) {
    threw = true;
    INFO(std::string(error.what()));
    REQUIRE(error.failures().size() == 1);
    CHECK(error.failures()[0].shard == loses.rank);
    CHECK(error.get_if<cuda::DeviceLost>() != nullptr);
  }
  CHECK(threw == (called != Called::and_dropped));
}

}  // namespace

TEST_CASE("shards on GPUs pass arrays by NCCL if Options say so, and otherwise through the host") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  for (const bool by_nccl : {true, false}) {
    const long before = stand_in_calls("ncclAllReduce");
    const ParallelModel model{Adds{}, cuda_devices({0, 1}),
                              Options{.collectives = by_nccl ? fanout::nccl_collectives() : nullptr}};
    for (int i = 0; i < 5; ++i) {
      const auto sums = model(fanout::on_all(), 1);
      for (const float sum : fanout::to_host(sums)) CHECK(sum == 206);
    }
    CHECK(stand_in_calls("ncclAllReduce") - before == (by_nccl ? 10 : 0));
  }
}

TEST_CASE("communicators are kept for later calls, and two calls at once have different ones") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{Adds{}, cuda_devices({0, 1}), Options{.collectives = fanout::nccl_collectives()}};
  model(fanout::on_all(), 1);
  const long made = stand_in_calls("ncclCommInitAll");
  for (int i = 0; i < 3; ++i) model(fanout::on_all(), 1);
  CHECK(stand_in_calls("ncclCommInitAll") == made);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) right += sum == 206 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 60);
  CHECK(stand_in_calls("ncclCommInitAll") <= made + 2);
}

TEST_CASE("a rank on which NCCL fails releases the others, and the next call has other communicators") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{Adds{}, cuda_devices({0, 1}), Options{.collectives = fanout::nccl_collectives()}};
  model(fanout::on_all(), 1);
  stand_in_fail("ncclAllReduce", 1, 1, ncclInternalError);
  CHECK_THROWS_AS(model(fanout::on_all(), 1), fanout::ReplicaError);
  for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == 206);
}

TEST_CASE("communicators that report an asynchronous error are not kept") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{Adds{}, cuda_devices({0, 1}), Options{.collectives = fanout::nccl_collectives()}};
  model(fanout::on_all(), 1);
  for (const int rank : {0, 1}) {
    const long aborted = stand_in_calls("ncclCommAbort");
    stand_in_fail("ncclCommGetAsyncError", 1 + rank, 1, ncclSystemError);
    try {
      for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == 206);
    } catch (const fanout::ReplicaError& error) {  // it was reported while GPUs were working
      CHECK(error.failures().size() == 1);
      CHECK(error.get_if<cuda::NcclError>() != nullptr);
    }
    for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == 206);
    CHECK(stand_in_calls("ncclCommAbort") == aborted + 2);  // one for each rank, once
  }
}

TEST_CASE("a shard that throws releases those that would wait for it in NCCL") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const auto fails = [](Context auto& ctx, int) {
    const auto own = fanout::empty<float>(ctx, 10);
    if (ctx.rank() == 1) throw std::runtime_error("boom");
    ctx.communicator().all_reduce(own);
  };
  const ParallelModel model{fails, cuda_devices({0, 1}), Options{.collectives = fanout::nccl_collectives()}};
  try {
    model(fanout::on_all(), 1);
    CHECK(false);
  } catch (const fanout::ReplicaError& error) {
    CHECK(error.failures().size() == 1);
    CHECK(error.get_if<std::runtime_error>() != nullptr);
  }
}

TEST_CASE(
    "arrays in the host's memory, on two devices of one GPU, and of types that NCCL does not know go by the host") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const auto adds = [](Context auto& ctx, int) {
    short here = 1;
    const auto there = fanout::empty<short>(ctx, 1);
    fanout::backend::transfer(ctx.device().memory(), there.data(), fanout::host_memory, &here, sizeof here);
    ctx.communicator().all_reduce(here);
    ctx.communicator().all_reduce(there);
    short back = 0;
    fanout::backend::transfer({}, &back, there.space(), there.data(), sizeof back);
    return 10 * here + back;
  };
  const std::vector<CudaDevice> two{CudaDevice(0), CudaDevice(0, 1)};
  const ParallelModel model{adds, fanout::DeviceSet<CudaDevice>(two),
                            Options{.collectives = fanout::nccl_collectives()}};
  for (const int sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == 22);
}

TEST_CASE("GPUs have access to each other's arrays before NCCL uses them, also with communicators of earlier calls") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{Adds{}, cuda_devices({0, 1}), Options{.collectives = fanout::nccl_collectives()}};
  for (int i = 0; i < 2; ++i) {
    const fanout_test::NothingChecked unchecked;
    for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == 206);
    CHECK(cuda::peer_trusted(0, 1));
  }
}

TEST_CASE("GPUs that cannot copy directly pass arrays through the host, with the same results") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{Adds{}, cuda_devices({0, 1}), Options{.collectives = fanout::nccl_collectives()}};
  for (const bool corrupt : {false, true}) {
    const fanout_test::NothingChecked unchecked;
    const long before = stand_in_calls("ncclAllReduce");
    if (corrupt) {
      stand_in_set_corrupting(1, 0, 1);
    } else {
      stand_in_set_peer(0, 1, 0);
    }
    for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == 206);
    stand_in_set_corrupting(1, 0, 0);
    stand_in_set_peer(0, 1, 1);
    CHECK(stand_in_calls("ncclAllReduce") == before);
  }
}

TEST_CASE("one pair that cannot copy directly is enough for all GPUs of a call to go through the host") {
  if (!fanout_test::has_stand_in(4)) return;
  const fanout_test::Watched watched;
  const fanout_test::NothingChecked unchecked;
  stand_in_set_peer(1, 3, 0);
  const ParallelModel model{Adds{}, cuda_devices({0, 1, 2, 3}), Options{.collectives = fanout::nccl_collectives()}};
  const long before = stand_in_calls("ncclAllReduce");
  for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == 220);
  stand_in_set_peer(1, 3, 1);
  CHECK(stand_in_calls("ncclAllReduce") == before);
}

TEST_CASE("a GPU that is lost in a collective releases the others, and only its shard has failed") {
  if (!fanout_test::has_stand_in(2)) return;
  const auto last = static_cast<std::size_t>(cuda::detail::count_gpus().count) - 1;
  for (const Called called : {Called::at_once, Called::by_async, Called::and_dropped, Called::by_deadline}) {
    for (const auto after : {LosesGpu::nothing, LosesGpu::read, LosesGpu::barrier, LosesGpu::again}) {
      for (const std::size_t rank : {std::size_t{0}, last}) {
        CAPTURE(called);
        CAPTURE(after);
        CAPTURE(rank);
        lose_gpu({.rank = rank, .after = after}, called);
      }
    }
  }
}

TEST_CASE("a GPU that is lost when a collective starts releases the others, and only its shard has failed") {
  if (!fanout_test::has_stand_in(2)) return;
  const auto last = static_cast<std::size_t>(cuda::detail::count_gpus().count) - 1;
  for (const Called called : {Called::at_once, Called::by_deadline}) {
    for (const std::size_t rank : {std::size_t{0}, last}) {
      CAPTURE(called);
      CAPTURE(rank);
      lose_gpu({.rank = rank, .before_start = true}, called);
    }
  }
}

TEST_CASE("a GPU that is lost before there are communicators is named") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  REQUIRE(cuda::peer_trusted(0, 1));
  const fanout::DeviceId reversed[]{CudaDevice(1).id(), CudaDevice(0).id()};  // no other test has these
  stand_in_fail("ncclCommInitAll", 1, 1, ncclUnhandledCudaError);
  CHECK_THROWS_AS(fanout::nccl_collectives()->open(reversed), cuda::NcclError);
  stand_in_poison(1, cudaErrorLaunchFailure);
  const std::string said = fanout_test::message_of([&] { fanout::nccl_collectives()->open(reversed); });
  CHECK(said.find("device cuda:1 is lost") == 0);
}

TEST_CASE("an asynchronous error of NCCL ends a call whose GPUs wait, and the error is thrown") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  REQUIRE(cuda::peer_trusted(0, 1));  // whose check waits for the GPUs
  fanout_test::Barrier barrier;
  const auto waits = [&barrier](Context auto& ctx, int) {
    const auto own = fanout::empty<float>(ctx, 1000);
    if (ctx.rank() == 0) fanout_test::call_in(ctx.stream(), barrier);
    ctx.communicator().all_reduce(own);
  };
  const ParallelModel model{waits, cuda_devices({0, 1}), Options{.collectives = fanout::nccl_collectives()}};
  stand_in_fail("ncclCommGetAsyncError", 2, 1, ncclSystemError);  // of rank 1
  stand_in_forget_counts();
  std::thread opens([&barrier] {
    while (stand_in_calls("ncclCommAbort") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    barrier.open();
  });
  std::vector<std::size_t> failed;
  ncclResult_t code = ncclSuccess;
  const std::string said = fanout_test::message_of([&] {
    try {
      model(fanout::on_all(), 1);
    } catch (const fanout::ReplicaError& error) {
      for (const fanout::Failure& failure : error.failures()) failed.push_back(failure.shard);
      if (const auto* const of_nccl = error.get_if<cuda::NcclError>()) code = of_nccl->code();
      throw;
    }
  });
  opens.join();
  CAPTURE(said);
  CHECK(failed == std::vector<std::size_t>{1});
  CHECK(code == ncclSystemError);
}
