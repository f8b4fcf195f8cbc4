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

namespace {

/// Each shard's array has its rank in all elements, and the batch's rows are not equally shared.
template <class T, class Rule>
struct Reduces {
  Rule rule;

  auto forward(Context auto& ctx, fanout::RowRange rows) const {
    const auto here = fanout::Tensor<T, 1>::full({1000}, static_cast<T>(ctx.rank() + rows.size()));
    return rule(fanout::to(here, ctx.device()), rows);
  }
};
constexpr auto sums = [](auto own, const fanout::RowRange&) { return fanout::psum(std::move(own)); };
constexpr auto means = [](auto own, const fanout::RowRange&) { return fanout::pmean(std::move(own)); };
constexpr auto greatest = [](auto own, const fanout::RowRange&) { return fanout::pmax(std::move(own)); };

template <class T, class Rule>
void check_reduced(Rule rule, std::size_t rows, long expected_calls) {
  fanout::Tensor<T, 1> results[2];
  for (const bool by_nccl : {false, true}) {
    const ParallelModel model{Reduces<T, Rule>{rule}, cuda_devices(),
                              Options{.collectives = by_nccl ? fanout::nccl_collectives() : nullptr}};
    const long before = stand_in_calls("ncclReduce");
    auto result = model(fanout::Range(rows));
    CHECK(stand_in_calls("ncclReduce") - before == (by_nccl ? expected_calls : 0));
    CHECK(result.space().owner == fanout::DeviceId{.kind = "cuda", .index = 0});
    results[by_nccl ? 1 : 0] = fanout::to_host(result);
  }
  REQUIRE(results[0].size() == 1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    CHECK(static_cast<double>(results[1][i]) == doctest::Approx(static_cast<double>(results[0][i])).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("sums and means of arrays on GPUs are made by NCCL, and are those that the host makes") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const long gpus = cuda::detail::count_gpus().count;
  check_reduced<float>(sums, 101, gpus);
  check_reduced<double>(sums, 101, gpus);
  check_reduced<int>(sums, 101, gpus);
  check_reduced<float>(means, 101, gpus);  // rows that are not equally shared
  check_reduced<double>(means, 101, gpus);
  check_reduced<double>(means, 8 * 13, gpus);
  CHECK(stand_in_calls("ncclRedOpCreatePreMulSum") > 0);
  CHECK(stand_in_calls("ncclRedOpCreatePreMulSum") == stand_in_calls("ncclRedOpDestroy"));
  // What the host does: NCCL's greatest value of NaN is none that is documented, and shards without rows have no mean.
  check_reduced<double>(greatest, 101, 0);
  check_reduced<short>(sums, 101, 0);
  check_reduced<double>(means, 1, 0);
}

TEST_CASE("the sums of a tree are made with one set of communicators") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const auto tree = [](auto own, const fanout::RowRange& rows) {
    auto other = fanout::Tensor<float, 1>(own);
    return std::tuple{fanout::psum(std::move(own)), fanout::pmean(std::move(other)),
                      fanout::psum(static_cast<int>(rows.size()))};
  };
  const ParallelModel model{Reduces<float, decltype(tree)>{tree}, cuda_devices({0, 1}),
                            Options{.collectives = fanout::nccl_collectives()}};
  model(fanout::Range(10));
  const long made = stand_in_calls("ncclCommInitAll");
  const long before = stand_in_calls("ncclReduce");
  for (int i = 0; i < 3; ++i) {
    const auto [large, small, rows] = model(fanout::Range(10));
    CHECK(fanout::to_host(large)[999] == 11);
    CHECK(fanout::to_host(small)[2] == 5.5F);
    CHECK(rows == 10);
  }
  CHECK(stand_in_calls("ncclReduce") - before == 3 * 2 * 2);
  CHECK(stand_in_calls("ncclCommInitAll") == made);
}

TEST_CASE("asynchronous calls whose sums NCCL makes may be in flight at once, and collected in any order") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel model{Reduces<float, decltype(sums)>{sums}, cuda_devices({0, 1}),
                            Options{.collectives = fanout::nccl_collectives()}};
  auto first = model.async(fanout::Range(10));
  auto second = model.async(fanout::Range(20));
  auto third = model.async(fanout::Range(30));
  CHECK(fanout::to_host(third.get())[5] == 31);
  CHECK(fanout::to_host(first.get())[5] == 11);
  CHECK(fanout::to_host(second.get())[5] == 21);
}

TEST_CASE("the sum of a call's results is in one order with the collectives of a later call") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const Options by_nccl{.collectives = fanout::nccl_collectives()};
  const ParallelModel model{Reduces<float, decltype(sums)>{sums}, cuda_devices({0, 1}), by_nccl};
  std::atomic<int> begun{0};
  const auto meet = [&begun](Context auto& ctx, int) {
    const auto own = fanout::empty<float>(ctx, 1000);
    ctx.communicator().all_reduce(own);
    ++begun;
  };
  const ParallelModel later{meet, cuda_devices({0, 1}), by_nccl};
  for (int i = 1; i <= 5; ++i) {
    auto first = model.async(fanout::Range(10));
    auto second = later.async(fanout::on_all(), 1);
    while (begun != 2 * i) std::this_thread::yield();
    CHECK(fanout::to_host(first.get())[5] == 11);
    second.get();
  }
}

TEST_CASE("a sum in a nested call waits for its memory, which the outer shard's stream allocates") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel inner{Reduces<float, decltype(sums)>{sums}, cuda_devices({0, 1}),
                            Options{.collectives = fanout::nccl_collectives()}};
  const auto outer = [&inner](Context auto&, int) { return fanout::first(inner(fanout::Range(10))); };
  const ParallelModel model{outer, cuda_devices({0})};
  for (int i = 0; i < 3; ++i) CHECK(fanout::to_host(model(fanout::on_all(), 1))[7] == 11);
}

TEST_CASE("the call throws if NCCL cannot begin a sum, and the next call uses other communicators") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const ParallelModel sum{Reduces<float, decltype(sums)>{sums}, cuda_devices({0, 1}),
                          Options{.collectives = fanout::nccl_collectives()}};
  const ParallelModel mean{Reduces<double, decltype(means)>{means}, cuda_devices({0, 1}),
                           Options{.collectives = fanout::nccl_collectives()}};
  for (const char* call : {"ncclReduce", "ncclRedOpCreatePreMulSum", "ncclGroupEnd"}) {
    const bool of_sum = std::string(call) != "ncclRedOpCreatePreMulSum";
    stand_in_fail(call, 1, 1, ncclInternalError);
    if (of_sum) {
      CHECK_THROWS_AS(sum(fanout::Range(10)), cuda::NcclError);
    } else {
      CHECK_THROWS_AS(mean(fanout::Range(10)), cuda::NcclError);
    }
    CHECK(fanout::to_host(sum(fanout::Range(10)))[0] == 11);
    CHECK(fanout::to_host(mean(fanout::Range(10)))[0] == 5.5);
  }
}

namespace {

/// Loses a GPU when the shards have ended, and NCCL's sum waits in the stream of copies.
struct LosesGpuLate {
  int gpu;

  auto forward(Context auto& ctx, int) const {
    auto own = fanout::to(fanout::Tensor<float, 1>::full({1000}, 1), ctx.device());
    if (ctx.device().index() == gpu) {
      static int lost = 0;
      lost = gpu;
      const auto lose = [](void*) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        stand_in_poison(lost, cudaErrorLaunchFailure);
      };
      auto& streams = cuda::detail::streams_of(cuda::detail::gpu_at(gpu), 0);
      cuda::check(::cudaLaunchHostFunc(streams.copies().get(), lose, nullptr), "cudaLaunchHostFunc");
    }
    return fanout::psum(std::move(own));
  }
};

}  // namespace

TEST_CASE("a GPU that is lost while its part of a sum is awaited ends the call with DeviceLost") {
  if (!fanout_test::has_stand_in(2)) return;
  for (const int gpu : {0, 1}) {
    const fanout_test::Watched watched;
    const ParallelModel model{LosesGpuLate{gpu}, cuda_devices({0, 1}),
                              Options{.collectives = fanout::nccl_collectives()}};
    CHECK_THROWS_AS(model(fanout::on_all(), 1), cuda::DeviceLost);
  }
}
