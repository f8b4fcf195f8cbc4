// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <nccl.h>

#include <fanout/base/device_id.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/cuda/nccl/failure_watch.hpp>
#include <fanout/cuda/nccl/nccl_clique.hpp>
#include <fanout/cuda/nccl/nccl_error.hpp>
#include <fanout/cuda/nccl/nccl_transport.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/mpi/attachments.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/mpi_mail.hpp>
#include <fanout/mpi/ranks.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/sync/fork_epoch.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// NCCL between the GPUs of all ranks of a group. Borrows the group.
class NcclOfRanks final : public backend::CollectiveTransport, public Attachment {
 public:
  NcclOfRanks(const MpiGroup* group, const backend::ProcessRanks* models) noexcept : group_(*group), models_(*models) {}
  /// All ranks do this. Leaves the communicators alone in the child of a fork, and after MPI_Finalize().
  ~NcclOfRanks() override {
    int finalized = 0;
    if (epoch_ != fork_epoch() || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
    cuda::detail::NcclClique::destroy_all(idle_);
  }

  static const NcclOfRanks& of(const mpi::Ranks& ranks) {
    const MpiGroup* const group = &ranks.group_;
    const backend::ProcessRanks* const models = ranks;
    return ranks.attachments_.get<NcclOfRanks>(group, models);
  }

  /// For models that the rank calls alone.
  backend::TransportRanks* open(std::span<const DeviceId> devices) const override {
    return cuda::detail::nccl_transport.open(devices);
  }

  bool joins(const backend::ProcessRanks& processes) const noexcept override { return &processes == &models_; }

  backend::TransportRanks* open_with_others(std::span<const DeviceId> devices, const BatchPlace& place) const override {
    return group_.guarded([&] { return open_with_all(devices, place); });
  }

 private:
  backend::TransportRanks* open_with_all(std::span<const DeviceId> devices, const BatchPlace& place) const {
    const MpiGroup::Exchange alone(group_);
    const cuda::detail::NcclPlace among_all{.first = place.first_shard, .all = devices.size() + place.other_shards};
    Clique clique;
    Offer mine{.devices = devices.size()};
    group_.agree("nccl_collectives of " + std::to_string(among_all.all) + " shards", MpiGroup::exception_of([&] {
                   mine.can_join = cuda::detail::NcclTransport::can_join(devices) ? 1 : 0;
                   if (devices.empty()) return;
                   clique.reset(cuda::detail::NcclClique::find_idle(devices, among_all, idle_));
                   if (clique != nullptr) mine.id = hash_of(clique->id());
                 }));
    const std::vector<Offer> all = exchange(mine);
    const bool reuses = same_clique(all);
    if (!reuses && clique != nullptr) clique.release()->close();  // another rank still uses its part of it
    if (!std::all_of(all.begin(), all.end(), [](const Offer& each) { return each.can_join != 0; })) return nullptr;
    if (!reuses) {
      if (have_a_gpu_twice(devices, all)) return nullptr;
      clique = make(devices, among_all, all);
    }
    group_.agree(MpiGroup::exception_of([&] {
      if (clique == nullptr) return;
      clique->use(devices);
      if (!cuda::detail::failure_watch.add(*clique)) {
        throw Error(explain({.what = "no thread could be started that looks for failures of NCCL"}));
      }
    }));
    return clique.release();
  }

  /// Aborts the communicators if the call does not begin.
  struct Drop {
    void operator()(cuda::detail::NcclClique* clique) const noexcept {
      clique->abort();
      clique->close();
    }
  };
  using Clique = std::unique_ptr<cuda::detail::NcclClique, Drop>;

  /// What a rank can begin a call with.
  struct Offer {
    std::uint64_t devices = 0;
    std::uint64_t can_join = 0;
    std::uint64_t id = 0;  ///< a hash of that of its idle communicators; 0 without
  };

  template <std::size_t n>
  static std::uint64_t hash_of(const char (&text)[n]) noexcept {
    return backend::RankedStep::hash_of(std::string(text, n)) | 1U;
  }
  static std::uint64_t hash_of(const ncclUniqueId& id) noexcept { return hash_of(id.internal); }

  std::vector<Offer> exchange(const Offer& mine) const {
    constexpr int words = sizeof(Offer) / sizeof(std::uint64_t);
    std::vector<Offer> all(static_cast<std::size_t>(group_.size()));
    check_mpi(MPI_Allgather(&mine, words, MPI_UINT64_T, all.data(), words, MPI_UINT64_T, group_.get()),
              "MPI_Allgather");
    return all;
  }

  /// True if all ranks with devices have their part of the same idle communicators.
  static bool same_clique(const std::vector<Offer>& all) noexcept {
    const Offer& one = all[first_with_devices(all)];
    return one.id != 0 && std::all_of(all.begin(), all.end(),
                                      [&one](const Offer& each) { return each.devices == 0 || each.id == one.id; });
  }

  static std::size_t first_with_devices(const std::vector<Offer>& all) noexcept {
    std::size_t rank = 0;
    while (rank + 1 < all.size() && all[rank].devices == 0) ++rank;
    return rank;
  }

  /// True if two ranks use one GPU, which NCCL refuses, while the other ranks would wait.
  bool have_a_gpu_twice(std::span<const DeviceId> devices, const std::vector<Offer>& all) const {
    std::vector<std::uint64_t> own;
    group_.agree(MpiGroup::exception_of([&] {
      for (const DeviceId& device : devices) {
        char bus[64] = {};
        cuda::check(::cudaDeviceGetPCIBusId(bus, sizeof bus, device.index), "cudaDeviceGetPCIBusId", device.index);
        char host[MPI_MAX_PROCESSOR_NAME] = {};
        int length = 0;
        check_mpi(MPI_Get_processor_name(host, &length), "MPI_Get_processor_name");
        own.push_back(backend::RankedStep::hash_of(std::string(host) + ' ' + bus));
      }
    }));
    std::vector<int> counts;
    std::vector<int> begins;
    int end = 0;
    for (const Offer& each : all) {
      begins.push_back(end);
      counts.push_back(static_cast<int>(each.devices));
      end += counts.back();
    }
    std::vector<std::uint64_t> gpus(static_cast<std::size_t>(end));
    check_mpi(MPI_Allgatherv(own.data(), static_cast<int>(own.size()), MPI_UINT64_T, gpus.data(), counts.data(),
                             begins.data(), MPI_UINT64_T, group_.get()),
              "MPI_Allgatherv");
    std::sort(gpus.begin(), gpus.end());
    return std::adjacent_find(gpus.begin(), gpus.end()) != gpus.end();
  }

  /// New communicators of all ranks with devices; null on the others.
  Clique make(std::span<const DeviceId> devices, const cuda::detail::NcclPlace& place,
              const std::vector<Offer>& all) const {
    const auto root = static_cast<int>(first_with_devices(all));
    ncclUniqueId id{};
    Clique clique;
    // Before any rank waits for the others in NCCL, which does not end if one of them does not come.
    group_.agree(MpiGroup::exception_of([&] {
      if (group_.rank() == root) cuda::detail::check_nccl(::ncclGetUniqueId(&id), "ncclGetUniqueId");
      if (!devices.empty()) clique.reset(new cuda::detail::NcclClique(devices, place, idle_));
    }));
    check_mpi(MPI_Bcast(id.internal, static_cast<int>(sizeof id.internal), MPI_CHAR, root, group_.get()), "MPI_Bcast");
    group_.agree(MpiGroup::exception_of([&] {
      if (clique == nullptr) return;
      try {
        clique->join(id);
      } catch (const cuda::NcclError&) {
        cuda::detail::NcclTransport::refuse_lost_gpus(devices);
        throw;
      }
    }));
    return clique;
  }

  const MpiGroup& group_;
  const backend::ProcessRanks& models_;  // of the same ranks
  std::uint32_t epoch_ = fork_epoch();
  mutable cuda::detail::IdleCliques idle_;
};

}  // namespace detail

/// Collectives by NCCL between the GPUs of all ranks, for `Options{.collectives = fanout::nccl_collectives(ranks),
/// .ranks = ranks}`. NCCL's ranks are the shards of the call, in the order of the ranks of MPI, and then of the
/// devices. One rank makes NCCL's id, and MPI sends it to the others. If each shard of a call is on a GPU of its own,
/// arrays in GPU memory go from GPU to GPU, in the devices' streams. Otherwise, they go through host memory.
/// Communicators are cached for later calls on the same GPUs, until the Ranks are destroyed. Calls of one rank alone
/// are as with nccl_collectives(). All ranks set this option of a model, or none: else its calls throw
/// StructureMismatch.
///
/// If a GPU fails, the collectives of the call are aborted on all ranks, which throw ReplicaError. At
/// MPI_THREAD_FUNNELED, a rank that waits for its GPUs does not hear of another rank's failure before NCCL does. Not
/// run on GPUs yet. Valid as long as the Ranks.
inline const backend::CollectiveTransport* nccl_collectives(const mpi::Ranks& ranks) {
  return &detail::NcclOfRanks::of(ranks);
}
const backend::CollectiveTransport* nccl_collectives(const mpi::Ranks&& ranks) = delete;

}}  // namespace fanout::v0

// Programs that include this must link libnccl and the MPI library.
