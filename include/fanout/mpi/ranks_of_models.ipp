// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/ranks_of_models.hpp>

#include <memory>
#include <optional>

#include <fanout/mpi/reduction/ordered_reduction.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

BatchPlace RanksOfModels::begin(const backend::RankedStep& step, backend::ProcessRendezvous** rendezvous) const {
  return group_.guarded([&] {
    const bool joins = rendezvous != nullptr && step.collectives != nullptr && step.collectives->joins(*this);
    std::vector<DeviceId> devices;  // of the shards, for collectives
    const BatchPlace place = begin_with_all(step, joins, devices, rendezvous);
    if (joins && step.shards + place.other_shards > 1) {
      auto* const direct = step.collectives->open_with_others(devices, place);
      if (direct != nullptr) (*rendezvous)->run_direct_by(*direct);
    }
    return place;
  });
}

BatchPlace RanksOfModels::begin_with_all(const backend::RankedStep& step, bool joins, std::vector<DeviceId>& devices,
                                         backend::ProcessRendezvous** rendezvous) const {
  const RankGroup::Exchange exchange(group_);
  BatchPlace place{};
  std::uint64_t hash = step.hash;
  if (joins) backend::RankedStep::mix(hash, 1);
  std::vector<std::size_t> shards;  // of each rank
  std::exception_ptr failure = step.failure;
  if (failure == nullptr) {
    failure = RankGroup::exception_of([&] {
      if (rendezvous != nullptr) shards.resize(size());
      for (std::size_t i = 0; joins && i < step.plan->size(); ++i) {
        devices.push_back(step.devices[(*step.plan)[i].device]);
      }
    });
  }
  const std::vector<RankGroup::Words>& all =
      agree(step, hash, failure, joins ? ", with Options::collectives of all ranks" : "");
  if (step.random_call != nullptr) *step.random_call = static_cast<std::uint32_t>(all[0].random_call);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == rank()) continue;
    place.other_rows += all[i].rows;
    place.other_shards += all[i].shards;
    if (i < rank()) place.first_row += all[i].rows;
    if (i < rank()) place.first_shard += all[i].shards;
  }
  if (rendezvous != nullptr) {
    for (std::size_t i = 0; i < all.size(); ++i) shards[i] = all[i].shards;
    *rendezvous = rendezvous_of_all(shards, step.deadline);
  }
  if (step.is_made != nullptr) *step.is_made = true;
  return place;
}

backend::ProcessRendezvous* RanksOfModels::rendezvous_of_all(const std::vector<std::size_t>& shards,
                                                             const backend::StepDeadline& deadline) const {
  const RendezvousTags before = tags_;
  std::unique_ptr<MpiRendezvous> made;
  const std::exception_ptr failure =
      RankGroup::exception_of([&] { made = std::make_unique<MpiRendezvous>(group_, shards, tags_, deadline); });
  try {
    group_.agree(failure);
  } catch (...) {
    if (made != nullptr) made->cancel();
    tags_ = before;  // a rank that failed may have drawn none
    throw;
  }
  return made.release();
}

void RanksOfModels::combine_over_all(const backend::RankedStep& step) const {
  const RankGroup::Exchange exchange(group_);
  std::optional<CollectedValues> collected;
  std::optional<OrderedReduction> reduction;
  std::unique_ptr<TakenValues> by_library;
  std::vector<bool> counts;
  std::exception_ptr failure = step.failure;
  if (failure == nullptr) {
    failure = RankGroup::exception_of([&] {
      counts.resize(size());
      collected.emplace();
      if (step.visit != nullptr) step.visit(step.of, *collected);
      if (options_.reduce == mpi::by_library) {
        // A rank without rows may have to send other values than its own.
        by_library = by_library_(*collected, options_.gpu_aware && step.rows != 0);
      }
      reduction.emplace(group_, collected->on_host());
    });
  }
  const std::vector<RankGroup::Words>& all =
      agree(step, collected ? step.hash ^ collected->hash() : step.hash, failure);
  std::size_t rows = 0;
  for (const RankGroup::Words& words : all) rows += words.rows;
  for (std::size_t i = 0; i < all.size(); ++i) counts[i] = rows == 0 || all[i].rows != 0;
  if (by_library) by_library->run(counts[rank()]);
  if (reduction) reduction->run(counts);
  if (step.is_made != nullptr) *step.is_made = true;
  // After all messages: a device may fail here.
  if (by_library) by_library->finish();
  if (collected) collected->back_to_devices();
}

const std::vector<RankGroup::Words>& RanksOfModels::agree(const backend::RankedStep& step, std::uint64_t hash,
                                                          const std::exception_ptr& failure,
                                                          const char* options) const {
  const std::uint64_t random_call = step.random_call == nullptr ? 0 : *step.random_call;
  return group_.agree(
      {.hash = hash, .rows = step.rows, .shards = step.shards, .random_call = random_call},
      [&] { return described(step) + options; }, failure, step.deadline);
}

}}}  // namespace fanout::v0::detail
