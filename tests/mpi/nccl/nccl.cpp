// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/nccl.hpp>

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/cuda.hpp>

#include "collective/communicator_conformance.hpp"
#include "cuda/gpus.hpp"
#include "cuda/stand_in/stand_in.h"

// NCCL across the ranks of MPI_COMM_WORLD, on the stand-ins for CUDA's runtime and for NCCL, whose ranks may be in
// several processes. Two functions of NCCL stand before those of the stand-in, and note what they are called with.

namespace {

/// A call of ncclCommInitRank, as bytes that MPI sends.
struct Joined {
  char id[sizeof(ncclUniqueId)];
  int ranks;
  int rank;
  int gpu;
};
std::vector<Joined>& joined() {
  static std::vector<Joined> joined;
  return joined;
}
int& ids_made() {
  static int made = 0;
  return made;
}

template <class F>
F* next_of(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  ++ids_made();
  return next_of<ncclResult_t(ncclUniqueId*)>("ncclGetUniqueId")(id);
}
extern "C" ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  Joined call{.id = {}, .ranks = ranks, .rank = rank, .gpu = -1};
  std::memcpy(call.id, id.internal, sizeof call.id);
  cudaGetDevice(&call.gpu);
  joined().push_back(call);
  return next_of<ncclResult_t(ncclComm_t*, int, ncclUniqueId, int)>("ncclCommInitRank")(out, ranks, id, rank);
}

namespace {

using fanout::CudaDevice;
using fanout::Tensor;
using fanout::backend::Collective;
using fanout::backend::RankedCall;
using fanout::backend::TransportRanks;
using fanout::mpi::Ranks;
using fanout_test::message_of;

/// This process's part of a call on these GPUs.
struct Part {
  Part(const Ranks& of, const std::vector<CudaDevice>& on) : devices(on) {
    for (const CudaDevice& device : devices) ids.push_back(device.id());
    const std::size_t own = devices.size();
    std::vector<std::uint64_t> counts(of.size());
    const std::uint64_t count = own;
    MPI_Allgather(&count, 1, MPI_UINT64_T, counts.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (i < of.rank()) place.first_shard += counts[i];
      if (i != of.rank()) place.other_shards += counts[i];
    }
    all = own + place.other_shards;
  }

  TransportRanks* open(const Ranks& ranks) const {
    return fanout::nccl_collectives(ranks)->open_with_others(ids, place);
  }
  std::size_t first() const { return place.first_shard; }

  std::vector<CudaDevice> devices;
  std::vector<fanout::DeviceId> ids;
  fanout::detail::BatchPlace place{};
  std::size_t all = 0;
};

/// Each rank has `count` GPUs of its own.
Part own_gpus(const Ranks& ranks, std::size_t count) {
  std::vector<CudaDevice> devices;
  for (std::size_t i = 0; i < count; ++i) devices.emplace_back(static_cast<int>(2 * ranks.rank() + i));
  return {ranks, devices};
}

Collective collective(Collective::Kind kind, const Tensor<float, 1>& from, const Tensor<float, 1>& to,
                      std::size_t root = 0) {
  return {.kind = kind,
          .type = &fanout::detail::element_type<float>,
          .from = from.data(),
          .to = const_cast<float*>(to.data()),
          .from_space = from.space(),
          .to_space = to.space(),
          .count = from.size() < to.size() ? from.size() : to.size(),
          .root = root};
}

/// Runs one collective for each GPU of the part. GPU g sends {g, 10 * g}. Returns what each has got.
std::vector<std::vector<float>> run(TransportRanks& ranks, const Part& part, Collective::Kind kind,
                                    std::size_t root = 0) {
  const std::size_t received = kind == Collective::Kind::all_gather ? 2 * part.all : 2;
  std::vector<Tensor<float, 1>> from;
  std::vector<Tensor<float, 1>> to;
  std::vector<Collective> calls;
  for (std::size_t i = 0; i < part.devices.size(); ++i) {
    const auto gpu = static_cast<float>(part.first() + i);
    from.push_back(fanout_test::array_in(part.devices[i].memory(), std::vector<float>{gpu, 10 * gpu}));
    to.push_back(fanout_test::array_in(part.devices[i].memory(), std::vector<float>(received, -1)));
  }
  for (std::size_t i = 0; i < part.devices.size(); ++i) calls.push_back(collective(kind, from[i], to[i], root));
  std::vector<RankedCall> ranked;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK(ranks.takes(i, calls[i]));
    ranked.push_back({.rank = i, .call = &calls[i]});
  }
  {
    const auto entered = part.devices[0].enter();
    ranks.run(ranked);
  }
  for (const CudaDevice& device : part.devices) device.synchronize();
  std::vector<std::vector<float>> result;
  for (const Tensor<float, 1>& each : to) {
    const auto here = fanout::to_host(each);
    result.emplace_back(here.begin(), here.end());
  }
  return result;
}

void check_sums(TransportRanks& ranks, const Part& part) {
  const auto n = static_cast<float>(part.all);
  const float sum = n * (n - 1) / 2;
  for (const auto& got : run(ranks, part, Collective::Kind::all_reduce)) {
    CHECK(got == std::vector<float>{sum, 10 * sum});
  }
}

/// Forgets what earlier tests have done.
void forget() {
  joined().clear();
  ids_made() = 0;
}

/// What all ranks have noted, in their order, and forgets it.
std::vector<Joined> all_joined(const Ranks& ranks) {
  const int bytes = static_cast<int>(joined().size() * sizeof(Joined));
  std::vector<int> counts(ranks.size());
  std::vector<int> begins(ranks.size());
  MPI_Allgather(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  int end = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    begins[i] = end;
    end += counts[i];
  }
  std::vector<Joined> all(static_cast<std::size_t>(end) / sizeof(Joined));
  MPI_Allgatherv(joined().data(), bytes, MPI_BYTE, all.data(), counts.data(), begins.data(), MPI_BYTE, MPI_COMM_WORLD);
  joined().clear();
  return all;
}

int all_ids_made() {
  int made = std::exchange(ids_made(), 0);
  MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return made;
}

/// All GPUs have joined once, with one id, as the ranks that they are in the call.
void check_joined(const Ranks& ranks, const Part& part) {
  const std::vector<Joined> all = all_joined(ranks);
  REQUIRE(all.size() == part.all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(std::memcmp(all[i].id, all[0].id, sizeof all[0].id) == 0);
    CHECK(all[i].ranks == static_cast<int>(part.all));
    CHECK(all[i].rank == static_cast<int>(i));
    if (i >= part.first() && i < part.first() + part.ids.size()) CHECK(all[i].gpu == part.ids[i - part.first()].index);
  }
}

}  // namespace

TEST_CASE("one rank makes the id, and the GPUs of all ranks join with it, in the order of the ranks") {
  const fanout_test::Watched watched;
  forget();
  const int before = stand_in_alive("communicators");
  {
    const Ranks ranks{MPI_COMM_WORLD};
    const Part part = own_gpus(ranks, 2);
    TransportRanks* const opened = part.open(ranks);
    REQUIRE(opened != nullptr);
    check_joined(ranks, part);
    CHECK(ids_made() == (ranks.rank() == 0 ? 1 : 0));
    CHECK(all_ids_made() == 1);
    check_sums(*opened, part);
    const std::size_t last = part.all - 1;
    for (const auto& got : run(*opened, part, Collective::Kind::broadcast, last)) {
      CHECK(got == std::vector<float>{static_cast<float>(last), static_cast<float>(10 * last)});
    }
    for (const auto& got : run(*opened, part, Collective::Kind::all_gather)) {
      REQUIRE(got.size() == 2 * part.all);
      for (std::size_t i = 0; i < part.all; ++i) {
        CHECK(got[2 * i] == static_cast<float>(i));
        CHECK(got[2 * i + 1] == static_cast<float>(10 * i));
      }
    }
    opened->settle();
    opened->close();
    CHECK(stand_in_alive("communicators") - before == 2);
  }
  CHECK(stand_in_alive("communicators") == before);  // those of the Ranks went with it
}

TEST_CASE("communicators are kept for later calls on the same GPUs, if all ranks have them") {
  const fanout_test::Watched watched;
  forget();
  const Ranks ranks{MPI_COMM_WORLD};
  const Part part = own_gpus(ranks, 2);
  const Part one = own_gpus(ranks, 1);
  for (int round = 0; round < 3; ++round) {
    for (const Part* each : {&part, &one}) {
      TransportRanks* const opened = each->open(ranks);
      REQUIRE(opened != nullptr);
      check_sums(*opened, *each);
      opened->close();
    }
  }
  CHECK(all_ids_made() == 2);
  joined().clear();
  // The last rank still uses its part.
  const bool is_last = ranks.rank() + 1 == ranks.size();
  TransportRanks* const first = part.open(ranks);
  REQUIRE(first != nullptr);
  if (!is_last) first->close();
  TransportRanks* const second = part.open(ranks);
  REQUIRE(second != nullptr);
  CHECK(all_ids_made() == 1);
  check_joined(ranks, part);
  check_sums(*second, part);
  // Now it has idle communicators, but not those that the others would use.
  (is_last ? first : second)->close();
  TransportRanks* const third = part.open(ranks);
  REQUIRE(third != nullptr);
  CHECK(all_ids_made() == (ranks.size() == 1 ? 0 : 1));
  check_sums(*third, part);
  third->close();
  if (is_last) second->close();
  joined().clear();
}

TEST_CASE("ranks may have different numbers of GPUs, or none") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  for (int round = 0; round < 2; ++round) {
    const Part part = own_gpus(ranks, ranks.rank() == 0 && ranks.size() > 1 ? 0 : 1 + ranks.rank() % 2);
    TransportRanks* const opened = part.open(ranks);
    REQUIRE((opened != nullptr) == !part.devices.empty());
    if (round == 0) check_joined(ranks, part);
    CHECK(all_ids_made() == (round == 0 ? 1 : 0));
    if (opened == nullptr) continue;
    check_sums(*opened, part);
    opened->close();
  }
}

TEST_CASE("devices that NCCL cannot connect are refused on all ranks, before it is asked") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const std::size_t last = ranks.size() - 1;
  // A GPU of two ranks; two devices on one GPU of a rank; a host device.
  if (ranks.size() > 1) CHECK(Part(ranks, {CudaDevice(0)}).open(ranks) == nullptr);
  const int own = static_cast<int>(2 * ranks.rank());
  std::vector<CudaDevice> devices{CudaDevice(own)};
  if (ranks.rank() == last) devices.emplace_back(own, 1);
  CHECK(Part(ranks, devices).open(ranks) == nullptr);
  Part host = own_gpus(ranks, 1);
  if (ranks.rank() == last) host.ids[0] = {.kind = "host", .index = 0};
  CHECK(host.open(ranks) == nullptr);
  CHECK(all_ids_made() == 0);
  CHECK(all_joined(ranks).empty());
}

TEST_CASE("what fails on a rank before all join throws on all ranks") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const Part part = own_gpus(ranks, 2);
  const std::size_t last = ranks.size() - 1;
  const auto text_of_open = [&] { return message_of([&] { static_cast<void>(part.open(ranks)); }); };
  if (ranks.rank() == 0) stand_in_fail("ncclGetUniqueId", 1, 1, ncclSystemError);
  std::string text = text_of_open();
  CHECK(text.find("unhandled system error") != std::string::npos);
  CHECK((text.find("rank 0 on ") != std::string::npos) == (ranks.rank() != 0));
  if (ranks.rank() == last) stand_in_fail("cudaDeviceGetPCIBusId", 1, 1, cudaErrorUnknown);
  text = text_of_open();
  CHECK(text.find("cudaDeviceGetPCIBusId") != std::string::npos);
  CHECK((text.find("rank " + std::to_string(last) + " on ") != std::string::npos) == (ranks.rank() != last));
  joined().clear();
  static_cast<void>(all_ids_made());
  TransportRanks* const opened = part.open(ranks);
  REQUIRE(opened != nullptr);
  check_joined(ranks, part);
  CHECK(all_ids_made() == 1);
  check_sums(*opened, part);
  opened->close();
}

TEST_CASE("ranks whose GPUs wait for one that is lost are released, if NCCL notices that it has aborted") {
  if (std::getenv("FANOUT_STAND_IN_NO_REMOTE_ERRORS") != nullptr) {
    MESSAGE("skipped: this NCCL does not notice it");
    return;
  }
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const Part part = own_gpus(ranks, 1);
  TransportRanks* const opened = part.open(ranks);
  REQUIRE(opened != nullptr);
  const bool loses = ranks.rank() + 1 == ranks.size();
  const auto own = fanout_test::array_in(part.devices[0].memory(), std::vector<float>(4));
  const Collective call = collective(Collective::Kind::all_reduce, own, own);
  const RankedCall ranked[] = {{.rank = 0, .call = &call}};
  static int gpu = 0;
  gpu = part.ids[0].index;
  if (loses) {
    const fanout::cuda::DeviceGuard entered(gpu);
    const auto lose = [](void* which) { stand_in_poison(*static_cast<const int*>(which), cudaErrorLaunchFailure); };
    fanout::cuda::check(::cudaLaunchHostFunc(part.devices[0].stream().get(), lose, &gpu), "cudaLaunchHostFunc", gpu);
  }
  const std::string text = message_of([&] {
    {
      const auto entered = part.devices[0].enter();
      opened->run(ranked);
    }
    part.devices[0].synchronize();  // ends on all ranks
  });
  if (loses) CHECK(text != "");
  for (int tries = 0; tries < 2000 && opened->failure(0) == nullptr; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(opened->failure(0) != nullptr);
  opened->settle();
  opened->close();
  joined().clear();
  static_cast<void>(all_ids_made());
}

TEST_CASE("a model that one rank calls alone has NCCL between its own GPUs") {
  const fanout_test::Watched watched;
  const Ranks ranks{MPI_COMM_WORLD};
  const Part part = own_gpus(ranks, 2);
  if (ranks.rank() != 0) return;
  TransportRanks* const opened = fanout::nccl_collectives(ranks)->open(part.ids);
  REQUIRE(opened != nullptr);
  Part alone = part;
  alone.all = 2;
  check_sums(*opened, alone);
  opened->close();
  CHECK(ids_made() == 0);
}
