// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/mpi/rank_group.hpp>
#include <fanout/mpi/sliced_reduction.hpp>
#include <fanout/plan/batch_place.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The ranks of a group, as models see them. Borrows the group.
class RanksOfModels final : public backend::ProcessRanks {
 public:
  explicit RanksOfModels(const RankGroup& group) noexcept : group_(group) {}

  std::size_t rank() const noexcept override { return static_cast<std::size_t>(group_.rank()); }
  std::size_t size() const noexcept override { return static_cast<std::size_t>(group_.size()); }

  BatchPlace begin(const backend::RankedStep& step) const override {
    const RankGroup::Use use(group_);
    BatchPlace place;
    const std::vector<RankGroup::Words> all = agree(step, step.failure);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == rank()) continue;
      place.other_rows += all[i].rows;
      place.other_shards += all[i].shards;
      if (i < rank()) place.first_row += all[i].rows;
      if (i < rank()) place.first_shard += all[i].shards;
    }
    return place;
  }

  void combine(const backend::RankedStep& step, std::span<const backend::RankedValue> values) const override {
    const RankGroup::Use use(group_);
    std::deque<Storage> staged;
    std::optional<SlicedReduction> reduction;
    std::exception_ptr failure = step.failure;
    if (failure == nullptr) {
      failure = RankGroup::exception_of([&] { reduction.emplace(group_, on_host(values, staged)); });
    }
    const std::vector<RankGroup::Words> all = agree(step, failure);
    std::size_t rows = 0;
    for (const RankGroup::Words& words : all) rows += words.rows;
    std::vector<bool> counts;
    for (const RankGroup::Words& words : all) counts.push_back(rows == 0 || words.rows != 0);
    reduction->run(counts);
    for (const backend::RankedValue& value : values) {
      if (value.space == host_memory) continue;
      const Storage& copy = staged.front();
      backend::transfer(backend::memory_of(value.space), value.data, host_memory, copy.data(), bytes(value));
      staged.pop_front();
    }
  }

 private:
  static std::size_t bytes(const backend::RankedValue& value) noexcept {
    return value.count * value.fold->element_size;
  }

  std::vector<RankGroup::Words> agree(const backend::RankedStep& step, const std::exception_ptr& failure) const {
    return group_.agree(
        {.hash = step.hash, .rows = step.rows, .shards = step.shards}, [&step] { return step.name(step.of); }, failure);
  }

  /// The values, or copies of those in device memory.
  static std::vector<backend::RankedValue> on_host(std::span<const backend::RankedValue> values,
                                                   std::deque<Storage>& staged) {
    std::vector<backend::RankedValue> here(values.begin(), values.end());
    for (backend::RankedValue& value : here) {
      if (value.fold->element_size == 0) {
        throw Error(explain({.what = "a value is combined over ranks that cannot be sent as bytes",
                             .expected = "numbers, arrays of numbers, or a trivially copyable type",
                             .found = value.fold->name()}));
      }
      if (value.space == host_memory) continue;
      const Storage& copy = staged.emplace_back(backend::Memory{}, bytes(value));
      backend::transfer(backend::Memory{}, copy.data(), value.space, value.data, bytes(value));
      value.data = copy.data();
    }
    return here;
  }

  const RankGroup& group_;
};

}}}  // namespace fanout::v0::detail
