// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/ranks_options.hpp>
#include <fanout/mpi/reduction/collected_values.hpp>
#include <fanout/mpi/rendezvous/mpi_rendezvous.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>
#include <fanout/plan/batch_place.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The ranks of a group, as models see them. Borrows the group.
class RanksOfModels final : public backend::ProcessRanks {
 public:
  /// Takes the values out that a library combines. `takes_devices`: also where they are in device memory.
  using ByLibrary = std::function<std::unique_ptr<TakenValues>(CollectedValues& values, bool takes_devices)>;

  /// `by_library`: called with RanksOptions::reduce = by_library.
  RanksOfModels(const RankGroup& group, const mpi::RanksOptions& options, ByLibrary by_library)
      : group_(group), options_(options), by_library_(std::move(by_library)) {}

  std::size_t rank() const noexcept override { return static_cast<std::size_t>(group_.rank()); }
  std::size_t size() const noexcept override { return static_cast<std::size_t>(group_.size()); }

  void check_any_thread() const override { group_.mail().check_any_thread(); }

  FANOUT_INLINE BatchPlace begin(const backend::RankedStep& step,
                                 backend::ProcessRendezvous** rendezvous) const override;

  void combine(const backend::RankedStep& step) const override {
    group_.guarded([&] { combine_over_all(step); });
  }

 private:
  /// `joins`: whether Options::collectives joins these ranks.
  FANOUT_INLINE BatchPlace begin_with_all(const backend::RankedStep& step, bool joins, std::vector<DeviceId>& devices,
                                          backend::ProcessRendezvous** rendezvous) const;

  /// The rendezvous of this process. Throws on all ranks if one of them has no memory for its own.
  FANOUT_INLINE backend::ProcessRendezvous* rendezvous_of_all(const std::vector<std::size_t>& shards,
                                                              const backend::StepDeadline& deadline) const;

  /// All that allocates comes before ranks agree, or ends in an exchange of its own: the others wait for this rank.
  FANOUT_INLINE void combine_over_all(const backend::RankedStep& step) const;

  FANOUT_INLINE const std::vector<RankGroup::Words>& agree(const backend::RankedStep& step, std::uint64_t hash,
                                                           const std::exception_ptr& failure,
                                                           const char* options = "") const;

  const RankGroup& group_;
  mpi::RanksOptions options_;
  ByLibrary by_library_;
  mutable RendezvousTags tags_;  // guarded by RankGroup::Exchange
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/ranks_of_models.ipp>
#endif
