// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests of the stand-in for NCCL. Each has three ranks on three devices.
#include <nccl.h>

#include <functional>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "use.hpp"

using namespace stand_in_test;

namespace {

void done(ncclResult_t result) { CHECK(std::string(ncclGetErrorString(result)) == "no error"); }

constexpr int ranks = 3;
constexpr std::size_t count = 4;
constexpr std::size_t bytes = ranks * count * sizeof(float);

/// A communicator, a stream and two buffers for each rank.
struct World {
  World() {
    done(ncclCommInitAll(comms, ranks, nullptr));
    for (int rank = 0; rank < ranks; ++rank) {
      ok(cudaSetDevice(rank));
      streams[rank] = make_stream();
      for (auto* const buffer : {&sent[rank], &received[rank]}) {
        void* memory = nullptr;
        ok(cudaMalloc(&memory, bytes));
        *buffer = static_cast<float*>(memory);
      }
      std::vector<float> numbers(ranks * count);
      std::iota(numbers.begin(), numbers.end(), static_cast<float>(100 * rank));
      ok(cudaMemcpy(sent[rank], numbers.data(), bytes, cudaMemcpyHostToDevice));
      ok(cudaMemset(received[rank], 0, bytes));
      ok(cudaDeviceSynchronize());
    }
  }
  ~World() {
    for (int rank = 0; rank < ranks; ++rank) {
      if (comms[rank] != nullptr) done(ncclCommDestroy(comms[rank]));
      ok(cudaSetDevice(rank));
      ok(cudaStreamSynchronize(streams[rank]));
      ok(cudaStreamDestroy(streams[rank]));
      ok(cudaFree(sent[rank]));
      ok(cudaFree(received[rank]));
    }
    CHECK(stand_in_alive("communicators") == before);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// One thread asks for all ranks.
  void group(const std::function<ncclResult_t(int)>& ask) {
    done(ncclGroupStart());
    for (int rank = 0; rank < ranks; ++rank) done(ask(rank));
    done(ncclGroupEnd());
  }
  /// One thread for each rank.
  void threads(const std::function<void(int)>& ask) {
    std::vector<std::thread> all;
    for (int rank = 0; rank < ranks; ++rank) all.emplace_back([&ask, rank] { ask(rank); });
    for (auto& thread : all) thread.join();
  }
  void abort() {
    group([this](int rank) { return ncclCommAbort(std::exchange(comms[rank], nullptr)); });
  }
  void synchronize() {
    for (int rank = 0; rank < ranks; ++rank) {
      ok(cudaSetDevice(rank));
      ok(cudaStreamSynchronize(streams[rank]));
    }
  }
  std::vector<float> result(int rank) {
    synchronize();
    std::vector<float> numbers(ranks * count);
    ok(cudaMemcpy(numbers.data(), received[rank], bytes, cudaMemcpyDeviceToHost));
    return numbers;
  }
  ncclResult_t error(int rank) {
    ncclResult_t found{};
    done(ncclCommGetAsyncError(comms[rank], &found));
    return found;
  }

  const int before = stand_in_alive("communicators");
  ncclComm_t comms[ranks] = {};
  cudaStream_t streams[ranks] = {};
  float *sent[ranks] = {}, *received[ranks] = {};
};

std::vector<float> head(std::vector<float> numbers) {
  numbers.resize(count);
  return numbers;
}

}  // namespace

TEST_CASE("communicators know their rank, size and device") {
  const Fresh fresh;
  World world;
  int number = -1;
  done(ncclCommCount(world.comms[2], &number));
  CHECK(number == 3);
  done(ncclCommUserRank(world.comms[2], &number));
  CHECK(number == 2);
  done(ncclCommCuDevice(world.comms[2], &number));
  CHECK(number == 2);
}

TEST_CASE("each collective does what NCCL says") {
  const Fresh fresh;
  World world;
  const auto all = ranks * count;
  world.group([&](int rank) {
    return ncclAllReduce(world.sent[rank], world.received[rank], count, ncclFloat32, ncclSum, world.comms[rank],
                         world.streams[rank]);
  });
  for (int rank = 0; rank < ranks; ++rank) CHECK(head(world.result(rank)) == std::vector<float>{300, 303, 306, 309});

  world.group([&](int rank) {
    return ncclBroadcast(world.sent[rank], world.received[rank], count, ncclFloat32, 1, world.comms[rank],
                         world.streams[rank]);
  });
  for (int rank = 0; rank < ranks; ++rank) CHECK(head(world.result(rank)) == std::vector<float>{100, 101, 102, 103});

  world.group([&](int rank) {
    return ncclReduce(world.sent[rank], world.received[rank], count, ncclFloat32, ncclMax, 2, world.comms[rank],
                      world.streams[rank]);
  });
  CHECK(head(world.result(2)) == std::vector<float>{200, 201, 202, 203});
  CHECK(head(world.result(0)) == std::vector<float>{100, 101, 102, 103});

  world.group([&](int rank) {
    return ncclAllGather(world.sent[rank], world.received[rank], count, ncclFloat32, world.comms[rank],
                         world.streams[rank]);
  });
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(world.result(rank) == std::vector<float>{0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203});
  }

  world.group([&](int rank) {
    return ncclReduceScatter(world.sent[rank], world.received[rank], count, ncclFloat32, ncclAvg, world.comms[rank],
                             world.streams[rank]);
  });
  CHECK(head(world.result(0)) == std::vector<float>{100, 101, 102, 103});
  CHECK(head(world.result(2)) == std::vector<float>{108, 109, 110, 111});
  CHECK(all == 12);
}

TEST_CASE("each rank may have its own thread, and may receive into its send buffer") {
  const Fresh fresh;
  World world;
  world.threads([&](int rank) {
    ok(cudaSetDevice(rank));
    for (int round = 0; round < 3; ++round) {
      done(ncclAllReduce(world.sent[rank], world.sent[rank], count, ncclFloat32, ncclSum, world.comms[rank],
                         world.streams[rank]));
    }
    ok(cudaMemcpyAsync(world.received[rank], world.sent[rank], bytes, cudaMemcpyDeviceToDevice, world.streams[rank]));
  });
  CHECK(world.result(1)[0] == 2700);
}

TEST_CASE("a ring of sends and receives passes in a group") {
  const Fresh fresh;
  World world;
  world.threads([&](int rank) {
    done(ncclGroupStart());
    done(ncclSend(world.sent[rank], count, ncclFloat32, (rank + 1) % ranks, world.comms[rank], world.streams[rank]));
    done(
        ncclRecv(world.received[rank], count, ncclFloat32, (rank + 2) % ranks, world.comms[rank], world.streams[rank]));
    done(ncclGroupEnd());
  });
  CHECK(head(world.result(0)) == std::vector<float>{200, 201, 202, 203});
  CHECK(head(world.result(1)) == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("ranks that come one by one find each other by the id") {
  const Fresh fresh;
  World world;
  ncclUniqueId id;
  done(ncclGetUniqueId(&id));
  ncclComm_t comms[ranks] = {};
  world.threads([&](int rank) {
    ok(cudaSetDevice(rank));
    done(ncclCommInitRank(&comms[rank], ranks, id, rank));
  });
  done(ncclGetUniqueId(&id));
  ncclComm_t again[ranks] = {};
  done(ncclGroupStart());
  for (int rank = 0; rank < ranks; ++rank) {
    ok(cudaSetDevice(rank));
    done(ncclCommInitRank(&again[rank], ranks, id, rank));
  }
  done(ncclGroupEnd());
  for (int rank = 0; rank < ranks; ++rank) {
    done(ncclCommDestroy(comms[rank]));
    done(ncclCommDestroy(again[rank]));
  }
}

TEST_CASE("ranks that call different collectives are reported") {
  const Fresh fresh;
  World world;
  world.threads([&](int rank) {
    done(ncclAllReduce(world.sent[rank], world.received[rank], rank == 2 ? 3 : count, ncclFloat32, ncclSum,
                       world.comms[rank], world.streams[rank]));
  });
  world.synchronize();
  const auto said = Fresh::said();
  CHECK(said.find("ncclAllReduce of 3 float32, sum") != std::string::npos);
  CHECK(said.find("ncclAllReduce of 4 float32, sum") != std::string::npos);
  CHECK(world.error(0) == ncclInvalidUsage);
  CHECK(world.result(0) == std::vector<float>(ranks * count));
}

TEST_CASE("ranks that wait for a missing rank are reported") {
  const Fresh fresh;
  World world;
  for (int rank = 0; rank < 2; ++rank) {
    done(ncclAllReduce(world.sent[rank], world.received[rank], count, ncclFloat32, ncclSum, world.comms[rank],
                       world.streams[rank]));
  }
  world.synchronize();
  const auto said = Fresh::said();
  CHECK(said.find("waits for rank 2, which does not come") != std::string::npos);
  CHECK(world.error(1) == ncclInvalidUsage);
}

TEST_CASE("an aborted rank stops waiting") {
  const Fresh fresh;
  World world;
  for (int rank = 0; rank < 2; ++rank) {
    done(ncclAllReduce(world.sent[rank], world.received[rank], count, ncclFloat32, ncclSum, world.comms[rank],
                       world.streams[rank]));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that both are waiting
  world.abort();
  world.synchronize();
}

TEST_CASE("to abort one rank outside of a group waits for the ranks that wait for others") {
  const Fresh fresh;
  for (const int threads : {2, 1}) {  // one for each rank that waits, or one that aborts the first
    World world;
    for (int rank = 0; rank < 2; ++rank) {
      done(ncclAllReduce(world.sent[rank], world.received[rank], count, ncclFloat32, ncclSum, world.comms[rank],
                         world.streams[rank]));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that both are waiting
    world.threads([&](int rank) {
      if (rank < threads) done(ncclCommAbort(std::exchange(world.comms[rank], nullptr)));
    });
    world.synchronize();
    CHECK((Fresh::said().find("waits for rank") != std::string::npos) == (threads == 1));
  }
}

TEST_CASE("ranks wait for one whose device has failed until they are aborted") {
  const Fresh fresh;
  for (const bool before : {false, true}) {
    World world;
    std::atomic<bool> called{false};  // by all ranks
    if (before) {
      stand_in_poison(1, cudaErrorLaunchFailure);
    } else {
      ok(cudaSetDevice(1));
      const auto fail = [](void* flag) {
        while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
        stand_in_poison(1, cudaErrorLaunchFailure);
      };
      ok(cudaLaunchHostFunc(world.streams[1], fail, &called));
    }
    for (const int rank : {0, 2, 1}) {
      CHECK(ncclAllReduce(world.sent[rank], world.received[rank], count, ncclFloat32, ncclSum, world.comms[rank],
                          world.streams[rank]) == (before && rank == 1 ? ncclUnhandledCudaError : ncclSuccess));
    }
    called.store(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ok(cudaSetDevice(0));
    CHECK(cudaStreamQuery(world.streams[0]) == cudaErrorNotReady);
    (void)cudaGetLastError();
    world.abort();
    ok(cudaStreamSynchronize(world.streams[0]));
    stand_in_poison(1, 0);
  }
}

TEST_CASE("a communicator that ends while another thread uses it is reported") {
  const Fresh fresh;
  World world;
  done(ncclGroupStart());
  done(ncclAllReduce(world.sent[0], world.received[0], 0, ncclFloat32, ncclSum, world.comms[0], world.streams[0]));
  std::thread([&] { CHECK(ncclCommAbort(world.comms[0]) == ncclInvalidArgument); }).join();
  CHECK(Fresh::said() == "ncclCommAbort: another thread is using the communicator\n");
  for (const int rank : {1, 2}) {
    done(ncclAllReduce(world.sent[rank], world.received[rank], 0, ncclFloat32, ncclSum, world.comms[rank],
                       world.streams[rank]));
  }
  done(ncclGroupEnd());
  world.synchronize();
}

TEST_CASE("kernels of two communicators that nothing orders on a device are reported") {
  const Fresh fresh;
  World one;
  World other;
  const auto sum = [](World& world) {
    world.group([&world](int rank) {
      return ncclAllReduce(world.sent[rank], world.received[rank], count, ncclFloat32, ncclSum, world.comms[rank],
                           world.streams[rank]);
    });
  };
  SUBCASE("nothing") {
    sum(one);
    sum(other);
    const auto said = Fresh::said();
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(said.find("nothing orders it after the kernel of another communicator on device " + std::to_string(rank)) !=
            std::string::npos);
    }
  }
  SUBCASE("events") {
    sum(one);
    for (int rank = 0; rank < ranks; ++rank) {
      ok(cudaSetDevice(rank));
      cudaEvent_t end = nullptr;
      ok(cudaEventCreate(&end));
      ok(cudaEventRecord(end, one.streams[rank]));
      ok(cudaStreamWaitEvent(other.streams[rank], end, 0));
      ok(cudaEventDestroy(end));
    }
    sum(other);
  }
  SUBCASE("the host") {
    sum(one);
    one.synchronize();
    sum(other);
  }
  SUBCASE("one communicator") {
    sum(one);
    std::swap(one.streams, other.streams);
    sum(one);
  }
  one.synchronize();
  other.synchronize();
}

TEST_CASE("memory of a pool to which another rank's device has no access is reported") {
  const Fresh fresh;
  World world;
  ok(cudaSetDevice(0));
  void* own = nullptr;
  cudaMemPool_t pool = nullptr;
  ok(cudaDeviceGetDefaultMemPool(&pool, 0));
  ok(cudaMallocAsync(&own, bytes, world.streams[0]));
  const auto reduce = [&] {
    world.group([&](int rank) {
      return ncclAllReduce(rank == 0 ? own : world.sent[rank], world.received[rank], count, ncclFloat32, ncclSum,
                           world.comms[rank], world.streams[rank]);
    });
    world.synchronize();
    return Fresh::said();
  };
  const auto set_access = [pool](int device, cudaMemAccessFlags flags) {
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, device};
    access.flags = flags;
    ok(cudaMemPoolSetAccess(pool, &access, 1));
  };
  set_access(1, cudaMemAccessFlagsProtReadWrite);
  const std::string said = reduce();
  CHECK(said.find("is of a pool of device 0, to which device 2 has no access") != std::string::npos);
  CHECK(said.find("to which device 1") == std::string::npos);
  stand_in_set_peer(0, 2, 0);  // these pass it on through the host
  CHECK(reduce() == "");
  stand_in_set_peer(0, 2, 1);
  set_access(2, cudaMemAccessFlagsProtReadWrite);
  CHECK(reduce() == "");
  for (const int device : {1, 2}) set_access(device, cudaMemAccessFlagsProtNone);
  ok(cudaSetDevice(0));
  ok(cudaFreeAsync(own, world.streams[0]));
}

TEST_CASE("a communicator that does not block starts when it has been asked") {
  const Fresh fresh;
  ok(cudaSetDevice(0));
  ncclUniqueId id;
  done(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, &config) == ncclInProgress);
  int number = -1;
  CHECK(ncclCommCount(comm, &number) == ncclInvalidArgument);
  CHECK(Fresh::said().find("last call is in progress") != std::string::npos);
  const auto ask = [comm] {
    ncclResult_t state = ncclInProgress;
    int times = 0;
    for (; state == ncclInProgress; ++times) done(ncclCommGetAsyncError(comm, &state));
    done(state);
    return times;
  };
  CHECK(ask() > 1);
  done(ncclCommCount(comm, &number));
  const auto stream = make_stream();
  int* const memory = device_ints(1);
  const int five = 5;
  int back = 0;
  ok(cudaMemcpy(memory, &five, sizeof five, cudaMemcpyHostToDevice));
  const auto reduce = [&](int* to) { return ncclAllReduce(memory, to, 1, ncclInt32, ncclSum, comm, stream); };
  int* const other = device_ints(1);
  ok(cudaMemset(other, 0, sizeof back));
  CHECK(reduce(other) == ncclInProgress);
  ok(cudaStreamSynchronize(stream));
  ok(cudaMemcpy(&back, other, sizeof back, cudaMemcpyDeviceToHost));
  CHECK(back == 0);
  CHECK(ask() > 1);
  ok(cudaStreamSynchronize(stream));
  ok(cudaMemcpy(&back, other, sizeof back, cudaMemcpyDeviceToHost));
  CHECK(back == 5);
  done(ncclCommDestroy(comm));
  ok(cudaStreamDestroy(stream));
  ok(cudaFree(memory));
  ok(cudaFree(other));
}

TEST_CASE("invalid arguments are refused immediately") {
  const Fresh fresh;
  World world;
  const int same[] = {1, 1};
  ncclComm_t comms[2] = {};
  CHECK(ncclCommInitAll(comms, 2, same) == ncclInvalidUsage);
  CHECK(std::string(ncclGetLastError(nullptr)) == "Duplicate GPU detected");
  CHECK(ncclAllReduce(world.sent[0], world.received[1], count, ncclFloat32, ncclSum, world.comms[0],
                      world.streams[0]) == ncclInvalidArgument);
  CHECK(Fresh::said().find("is not in the memory of device 0") != std::string::npos);
  CHECK(ncclAllReduce(world.sent[0], world.received[0], count, ncclFloat32, ncclSum, world.comms[0],
                      world.streams[1]) == ncclInvalidArgument);
  CHECK(Fresh::said().find("the stream is of device 1, not of device 0") != std::string::npos);
  stand_in_fail("ncclAllReduce", 1, 1, ncclSystemError);
  CHECK(ncclAllReduce(world.sent[0], world.received[0], count, ncclFloat32, ncclSum, world.comms[0],
                      world.streams[0]) == ncclSystemError);
  done(ncclCommDestroy(world.comms[2]));
  CHECK(ncclCommDestroy(world.comms[2]) == ncclInvalidArgument);
  CHECK(Fresh::said().find("no such communicator") != std::string::npos);
  world.comms[2] = nullptr;
}
