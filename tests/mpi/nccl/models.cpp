// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/rendezvous/launches.hpp>

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/cuda.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/mpi/nccl.hpp>

#include "cuda/gpus.hpp"
#include "cuda/stand_in/stand_in.h"
#include "mpi/support/late_call.hpp"

// Collectives of ctx.communicator() between the GPUs of all ranks of MPI_COMM_WORLD, on the stand-ins for CUDA's
// runtime and NCCL. Each rank has one or two GPUs of its own. A function of NCCL stands before that of the stand-in,
// and notes what it is called with.

namespace {

/// The sizes of what ncclBroadcast() has sent, in the order of the calls.
std::vector<std::size_t>& sent() {
  static std::vector<std::size_t> sent;
  return sent;
}

}  // namespace

extern "C" ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                                      ncclComm_t communicator, cudaStream_t stream) {
  {
    static std::mutex mutex;
    const std::lock_guard noting(mutex);
    sent().push_back(count);
  }
  using F = ncclResult_t(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, "ncclBroadcast"))(from, to, count, type, root, communicator, stream);
}

namespace {

using fanout::Context;
using fanout::CudaDevice;
using fanout::Options;
using fanout::ParallelModel;
using fanout::mpi::Ranks;
using fanout_test::message_of;

/// This rank's GPUs, of which each rank has two of its own.
fanout::DeviceSet<CudaDevice> own_gpus(const Ranks& ranks, std::size_t count) {
  std::vector<CudaDevice> devices;
  for (std::size_t i = 0; i < count; ++i) devices.emplace_back(static_cast<int>(2 * ranks.rank() + i));
  return fanout::DeviceSet<CudaDevice>(devices);
}

Options by_nccl(const Ranks& ranks) { return {.collectives = fanout::nccl_collectives(ranks), .ranks = ranks}; }

template <class T>
T first_of(fanout::View<T, 1> there) {
  T here{};
  fanout::backend::transfer({}, &here, there.space(), there.data(), sizeof here);
  return here;
}
template <class T>
fanout::View<T, 1> on_gpu(Context auto& ctx, T value, std::size_t size = 100) {
  auto there = fanout::empty<T>(ctx, size);
  const std::vector<T> here(size, value);
  fanout::backend::transfer(ctx.device().memory(), there.data(), fanout::host_memory, here.data(), size * sizeof(T));
  return there;
}

/// The ranks, counted from 1, are added up, and the last one sends its own.
struct Adds {
  float forward(Context auto& ctx, int) const {
    const auto sum = on_gpu(ctx, static_cast<float>(ctx.rank() + 1));
    const auto last = on_gpu(ctx, static_cast<float>(ctx.rank() + 1));
    auto ranks = ctx.communicator();
    {
      const auto group = ranks.group();
      ranks.all_reduce(sum);
      ranks.broadcast(last, ctx.size() - 1);
    }
    return first_of(sum) + 1000 * first_of(last);
  }
  static float expected(std::size_t n) { return static_cast<float>(n * (n + 1) / 2 + 1000 * n); }
};

template <class Model>
void check_adds(const Model& model, std::size_t n) {
  for (const float sum : fanout::to_host(model(fanout::on_all(), 1))) CHECK(sum == Adds::expected(n));
}

/// The sum over all ranks.
long of_all(long mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return mine;
}

/// What a call throws, and which shards it says have failed. The same on all ranks.
struct Thrown {
  std::string text;
  std::vector<std::size_t> shards;
};
template <class F>
Thrown thrown_by(const F& f) {
  Thrown thrown;
  try {
    f();
  } catch (const fanout::ReplicaError& error) {
    for (const fanout::Failure& failure : error.failures()) thrown.shards.push_back(failure.shard);
    thrown.text = error.what();
  } catch (const fanout::Error& error) {
    thrown.text = error.what();
  }
  return thrown;
}

}  // namespace

TEST_CASE("arrays on GPUs go by NCCL between the shards of all ranks, which join once") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  for (const std::size_t gpus : {1U, 2U}) {
    const std::size_t n = gpus * ranks.size();
    const ParallelModel model{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)};
    const long before = stand_in_calls("ncclAllReduce");
    const long joined = stand_in_calls("ncclCommInitRankConfig");
    for (int call = 0; call < 5; ++call) check_adds(model, n);
    CHECK(stand_in_calls("ncclAllReduce") - before == static_cast<long>(5 * gpus));
    CHECK(stand_in_calls("ncclCommInitRankConfig") - joined == static_cast<long>(gpus));
    const ParallelModel by_host{Adds{}, own_gpus(ranks, gpus), {.ranks = ranks}};
    check_adds(by_host, n);
    CHECK(stand_in_calls("ncclAllReduce") - before == static_cast<long>(5 * gpus));
  }
}

TEST_CASE("ranks may have different numbers of GPUs") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const std::size_t gpus = 1 + ranks.rank() % 2;
  const auto n = static_cast<std::size_t>(of_all(static_cast<long>(gpus)));
  const ParallelModel model{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)};
  const long before = stand_in_calls("ncclAllReduce");
  for (int call = 0; call < 3; ++call) check_adds(model, n);
  CHECK(stand_in_calls("ncclAllReduce") - before == (n == 1 ? 0 : static_cast<long>(3 * gpus)));
}

TEST_CASE("arrays go round by send and recv, in a group and one after the other") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const auto goes_round = [](Context auto& ctx, int) {
    const std::size_t n = ctx.size();
    const auto own = on_gpu(ctx, static_cast<float>(ctx.rank()));
    const auto other = on_gpu(ctx, -1.0F);
    const auto third = on_gpu(ctx, -1.0F);
    auto comm = ctx.communicator();
    for (int round = 0; round < 3; ++round) {
      const auto group = comm.group();
      comm.send(own, (ctx.rank() + 1) % n);
      comm.recv(other, (ctx.rank() + n - 1) % n);
    }
    const std::size_t partner = ctx.rank() ^ 1U;
    if (partner < n && partner < ctx.rank()) comm.recv(third, partner);
    if (partner < n && partner > ctx.rank()) comm.send(own, partner);
    return std::tuple{first_of(other) == static_cast<float>((ctx.rank() + n - 1) % n),
                      partner >= ctx.rank() || first_of(third) == static_cast<float>(partner)};
  };
  for (const std::size_t gpus : {1U, 2U}) {
    const std::size_t n = gpus * ranks.size();
    if (n == 1) continue;
    const ParallelModel model{goes_round, own_gpus(ranks, gpus), by_nccl(ranks)};
    const long before = stand_in_calls("ncclSend");
    for (int call = 0; call < 3; ++call) {
      const auto [round, pairs] = model(fanout::on_all(), 1);
      for (const bool right : fanout::to_host(round)) CHECK(right);
      for (const bool right : fanout::to_host(pairs)) CHECK(right);
    }
    CHECK(of_all(stand_in_calls("ncclSend") - before) == static_cast<long>(3 * (3 * n + n / 2)));
  }
}

TEST_CASE("what NCCL does not take goes through host memory, also in the same group") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const auto adds = [](Context auto& ctx, int) {
    const auto by_nccl = on_gpu(ctx, 1.0F);
    const auto unknown = on_gpu(ctx, std::int16_t{1});
    std::vector<double> here(1000, 1.0);
    double number = 1;
    auto comm = ctx.communicator();
    {
      const auto group = comm.group();
      comm.all_reduce(here);
      comm.all_reduce(by_nccl);
      comm.all_reduce(unknown);
      comm.all_reduce(number);
    }
    comm.barrier();
    return here[999] + 100 * first_of(by_nccl) + 10'000 * first_of(unknown) + 1'000'000 * number;
  };
  for (const std::size_t gpus : {1U, 2U}) {
    const std::size_t n = gpus * ranks.size();
    const ParallelModel model{adds, own_gpus(ranks, gpus), by_nccl(ranks)};
    const long before = stand_in_calls("ncclAllReduce");
    for (const double sum : fanout::to_host(model(fanout::on_all(), 1))) {
      CHECK(sum == 1'010'101.0 * static_cast<double>(n));
    }
    CHECK(stand_in_calls("ncclAllReduce") - before == (n == 1 ? 0 : static_cast<long>(gpus)));
  }
}

TEST_CASE("a collective that NCCL takes on some ranks only is refused on all ranks") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  for (const std::size_t gpus : {1U, 2U}) {
    const auto differs = [](Context auto& ctx, int which) {
      const auto there = on_gpu(ctx, 1.0F);
      std::vector<float> here(100, 1.0F);
      auto comm = ctx.communicator();
      const bool last = ctx.rank() + 1 == ctx.size();
      if (which == 0 && last) return comm.all_reduce(here);
      if (which == 0) return comm.all_reduce(there);
      if (last) return comm.send(here, 0);
      if (ctx.rank() == 0) return comm.recv(there, ctx.size() - 1);
    };
    const std::size_t last = gpus * ranks.size() - 1;
    const ParallelModel model{differs, own_gpus(ranks, gpus), by_nccl(ranks)};
    for (const int which : {0, 1}) {
      const Thrown thrown = thrown_by([&] { model(fanout::on_all(), which); });
      INFO(thrown.text);
      CHECK(thrown.shards.size() == (which == 0 ? last + 1 : 2));
      CHECK(thrown.text.find("collectives that do not fit together") != std::string::npos);
      const std::string call = which == 0 ? "all_reduce(sum)" : "recv";
      CHECK(thrown.text.find("rank 0 called " + call + " of float[100] by the devices") != std::string::npos);
      const std::string other = which == 0 ? "all_reduce(sum) of float[100]" : "send of float[100] to rank 0";
      CHECK(thrown.text.find("rank " + std::to_string(last) + " called " + other) != std::string::npos);
    }
    check_adds(ParallelModel{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)}, last + 1);
  }
}

TEST_CASE("models with other Options::collectives are refused on all ranks") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  Options options = by_nccl(ranks);
  if (ranks.rank() == 1) options.collectives = nullptr;
  const std::string text = message_of([&] { ParallelModel{Adds{}, own_gpus(ranks, 1), options}(fanout::on_all(), 1); });
  CHECK(text.find("ranks make calls that do not fit together") != std::string::npos);
  CHECK(text.find("with Options::collectives of all ranks") != std::string::npos);
  check_adds(ParallelModel{Adds{}, own_gpus(ranks, 1), by_nccl(ranks)}, ranks.size());
}

TEST_CASE("a transport that does not join these ranks is not used between them") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const Ranks others{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const long before = stand_in_calls("ncclAllReduce");
  for (const auto* const collectives : {fanout::nccl_collectives(), fanout::nccl_collectives(others)}) {
    const ParallelModel model{Adds{}, own_gpus(ranks, 2), {.collectives = collectives, .ranks = ranks}};
    check_adds(model, 2 * ranks.size());
  }
  CHECK(stand_in_calls("ncclAllReduce") == before);
}

TEST_CASE("a shard that throws releases the shards of all ranks that would wait for it in NCCL") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  for (const std::size_t gpus : {1U, 2U}) {
    const std::size_t n = gpus * ranks.size();
    if (n == 1) continue;
    const auto throws = [](Context auto& ctx, std::size_t bad) {
      const auto own = on_gpu(ctx, 1.0F);
      ctx.communicator().all_reduce(own);
      if (ctx.rank() == bad) throw std::runtime_error("boom");
      ctx.communicator().all_reduce(own);
    };
    const ParallelModel model{throws, own_gpus(ranks, gpus), by_nccl(ranks)};
    for (std::size_t bad = 0; bad < n; ++bad) {
      const Thrown thrown = thrown_by([&] { model(fanout::on_all(), bad); });
      INFO(thrown.text);
      CHECK(thrown.shards == std::vector<std::size_t>{bad});
      CHECK(thrown.text.find("boom") != std::string::npos);
    }
    check_adds(ParallelModel{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)}, n);
  }
}

TEST_CASE("if NCCL fails on one rank, all ranks throw, and the next call has other communicators") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  for (const std::size_t gpus : {1U, 2U}) {
    const std::size_t n = gpus * ranks.size();
    if (n == 1) continue;
    const ParallelModel model{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)};
    check_adds(model, n);
    for (std::size_t bad = 0; bad < ranks.size(); ++bad) {
      const long joined = stand_in_calls("ncclCommInitRankConfig");
      if (ranks.rank() == bad) stand_in_fail("ncclAllReduce", 1, 1, ncclInternalError);
      const Thrown thrown = thrown_by([&] { model(fanout::on_all(), 1); });
      INFO(thrown.text);
      CHECK(thrown.text.find("internal error") != std::string::npos);
      REQUIRE(!thrown.shards.empty());
      for (const std::size_t shard : thrown.shards) CHECK(shard / gpus == bad);
      check_adds(model, n);
      CHECK(stand_in_calls("ncclCommInitRankConfig") - joined == static_cast<long>(gpus));
    }
  }
}

namespace {

/// The GPU of one shard is lost in its part of a collective, for which the GPUs of all ranks then wait.
struct LosesGpu {
  enum After { nothing, read, again };

  std::size_t shard;
  After after;

  float forward(Context auto& ctx, int) const {
    const auto own = on_gpu(ctx, 1.0F);
    if (ctx.rank() == shard) {
      static const auto lose = [](void* gpu) {
        stand_in_poison(*static_cast<const int*>(gpu), cudaErrorLaunchFailure);
      };
      static int gpu = 0;
      gpu = ctx.device().index();
      fanout::cuda::check(::cudaLaunchHostFunc(ctx.stream().get(), lose, &gpu), "cudaLaunchHostFunc");
    }
    auto comm = ctx.communicator();
    comm.all_reduce(own);
    if (after == again) comm.all_reduce(own);
    return after == read ? first_of(own) : 0.0F;
  }
};

}  // namespace

TEST_CASE("a GPU that is lost releases the GPUs of all ranks, and only its shard has failed") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (const std::size_t gpus : {1U, 2U}) {
    const std::size_t n = gpus * ranks.size();
    if (n == 1) continue;
    for (const auto after : {LosesGpu::nothing, LosesGpu::read, LosesGpu::again}) {
      for (const std::size_t shard : {std::size_t{0}, n - 1}) {
        CAPTURE(after);
        CAPTURE(shard);
        const fanout_test::Watched watched;
        check_adds(ParallelModel{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)}, n);
        const ParallelModel model{LosesGpu{shard, after}, own_gpus(ranks, gpus), by_nccl(ranks)};
        const Thrown thrown = thrown_by([&] { model(fanout::on_all(), 1); });
        INFO(thrown.text);
        CHECK(thrown.shards == std::vector<std::size_t>{shard});
        CHECK(thrown.text.find("is lost") != std::string::npos);
      }
      const fanout_test::Watched watched;
      check_adds(ParallelModel{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)}, n);
    }
  }
}

namespace {

/// Where all ranks wait for each other without MPI, of which one thread at a time may make use: a folder with a file
/// for each rank that has come.
class MeetingByFiles {
 public:
  explicit MeetingByFiles(const Ranks& ranks) : ranks_(ranks) {}

  void operator()() const {
    ++meetings_;
    std::ofstream{name_of(ranks_.rank())};
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      while (!std::filesystem::exists(name_of(rank))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::filesystem::path name_of(std::size_t rank) const {
    return std::filesystem::path(std::getenv("FANOUT_STAND_IN_PROCESSES")) /
           ("meeting." + std::to_string(meetings_) + "." + std::to_string(rank));
  }

  const Ranks& ranks_;
  static inline int meetings_ = 0;
};

}  // namespace

TEST_CASE("a rank that is late to a collective by NCCL throws Timeout, as those do that gave it up") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const MeetingByFiles meet(ranks);
  for (const std::size_t gpus : {1U, 2U}) {
    for (std::size_t late = 0; late < ranks.size(); ++late) {
      bool has_met = false;
      const fanout_test::Together all{late, fanout_test::Late::calls, &has_met};
      const auto adds = [&](Context auto& ctx, int) {
        const auto own = on_gpu(ctx, 1.0F);
        if (ranks.rank() == late && ctx.rank() % gpus == 0) {
          meet();
          has_met = true;
        }
        ctx.communicator().all_reduce(own);
      };
      const auto call = [&](const Ranks& own, std::chrono::milliseconds deadline) {
        const Options options{.deadline = deadline, .collectives = fanout::nccl_collectives(own), .ranks = own};
        const ParallelModel model{adds, own_gpus(own, gpus), options};
        model(fanout::on_all(), 1);
      };
      const std::string text = fanout_test::text_of_late_call(all, call, meet);
      INFO(text);
      CHECK(fanout_test::has(text, "rank " + std::to_string(late)));
      CHECK(!fanout_test::has(text, "not late: "));
      check_adds(ParallelModel{Adds{}, own_gpus(ranks, gpus), by_nccl(ranks)}, gpus * ranks.size());
    }
  }
}

TEST_CASE("calls at the same time start their collectives in one order on all ranks") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  constexpr int times = 40;
  const auto many = [](Context auto& ctx, std::size_t size) {
    const auto x = on_gpu(ctx, static_cast<float>(size), size);
    auto comm = ctx.communicator();
    for (int i = 0; i < times; ++i) {
      comm.broadcast(x, ctx.size() - 1);
      if ((ctx.rank() + static_cast<std::size_t>(i)) % 3 == 0) std::this_thread::yield();
    }
    return first_of(x);
  };
  for (const std::size_t gpus : {1U, 2U}) {
    if (gpus * ranks.size() == 1) continue;
    const ParallelModel one{many, own_gpus(ranks, gpus), by_nccl(ranks)};
    const ParallelModel other{many, own_gpus(ranks, gpus), by_nccl(ranks)};
    sent().clear();
    auto first = one.async(fanout::on_all(), std::size_t{100});
    for (const float x : fanout::to_host(other(fanout::on_all(), std::size_t{200}))) CHECK(x == 200);
    for (const float x : fanout::to_host(first.get())) CHECK(x == 100);
    REQUIRE(sent().size() == 2 * times * gpus);
    std::vector<std::size_t> sent_by_first = sent();
    MPI_Bcast(sent_by_first.data(), static_cast<int>(2 * times * gpus), MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    CHECK(sent() == sent_by_first);
  }
}
