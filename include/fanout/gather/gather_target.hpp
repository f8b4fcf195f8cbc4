// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

/// The shards that a result comes from, and the memory that it goes to. Borrows all that it refers to.
struct GatherTarget {
  const Plan& plan;
  const DeviceId* devices;  ///< indexed by the `device` of each shard of the plan
  backend::Memory target;
  int axis = 0;                               ///< on which arrays are concatenated, unless they choose their own
  std::size_t buffers_held = 1;               ///< holders of an output buffer besides the pieces: as a rule, the call
  const char* did = "returned";               ///< for errors: what the replicas did with the arrays
  const detail::DeviceTable* team = nullptr;  ///< shares large copies; if null, this thread makes them alone
  detail::OutputBuffers* outputs = nullptr;   ///< of the call; results may be written to their targets
  const detail::BatchPlace* batch = &detail::alone_in_batch;  ///< the rows of other processes weigh in means
  detail::DirectSums* sums = nullptr;  ///< adds arrays on the devices; if null, the host adds them all

  static constexpr std::size_t by_others = ~std::size_t{0} / 2;  ///< for `buffers_held`: no buffer is taken

  GatherTarget on_axis(int other) const {
    GatherTarget place = *this;
    place.axis = other;
    return place;
  }

  std::size_t size() const noexcept { return plan.size(); }
  /// The device that ran the shard.
  const DeviceId& device(std::size_t shard) const { return devices[plan[shard].device]; }
  /// The shard as text: `shard 1 on host:1, rows [15, 30)`.
  [[gnu::cold]] FANOUT_INLINE std::string describe(std::size_t shard) const;
  /// The shard's share of all rows, from 0 to 1. If there are no rows, all shards have equal shares.
  double share(std::size_t shard) const {
    return rows() == 0 ? 1.0 / static_cast<double>(size() + batch->other_shards)
                       : static_cast<double>(plan[shard].rows.size()) / static_cast<double>(rows());
  }
  /// True if the shard has rows, or if no shard has. Without rows, a shard has no mean and no greatest value.
  bool counts(std::size_t shard) const { return rows() == 0 || plan[shard].rows.size() != 0; }
  /// The first shard that counts; shard 0 if only other processes have rows.
  std::size_t first() const {
    for (std::size_t shard = 0; shard < size(); ++shard) {
      if (counts(shard)) return shard;
    }
    return 0;
  }

 private:
  std::size_t rows() const { return plan.rows() + batch->other_rows; }
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/gather/gather_target.ipp>
#endif
