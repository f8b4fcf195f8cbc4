// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/ranks_options.hpp>
#include <fanout/mpi/reduction/collected_values.hpp>
#include <fanout/mpi/reduction/library_reduction.hpp>
#include <fanout/mpi/rendezvous/mpi_rendezvous.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>
#include <fanout/plan/batch_place.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The ranks of a group, as models see them. Borrows the group.
class RanksOfModels final : public backend::ProcessRanks {
 public:
  RanksOfModels(const RankGroup& group, const mpi::RanksOptions& options) noexcept : group_(group), options_(options) {}

  std::size_t rank() const noexcept override { return static_cast<std::size_t>(group_.rank()); }
  std::size_t size() const noexcept override { return static_cast<std::size_t>(group_.size()); }

  void check_any_thread() const override { group_.thread_level().check_any_thread(); }

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

  static bool taken_by_library(const backend::RankedValue& value) noexcept {
    return LibraryReduction::takes(*value.fold);
  }

  FANOUT_INLINE const std::vector<RankGroup::Words>& agree(const backend::RankedStep& step, std::uint64_t hash,
                                                           const std::exception_ptr& failure,
                                                           const char* options = "") const;

  const RankGroup& group_;
  mpi::RanksOptions options_;
  mutable RendezvousTags tags_;  // guarded by RankGroup::Exchange
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/ranks_of_models.ipp>
#endif
