// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

/// Which shards a result comes from and where it goes.
struct GatherTarget {
  const Plan& plan;
  const DeviceId* devices;  ///< by their positions in the set, which the plan names
  backend::Memory target;
  int axis = 0;                  ///< on which arrays are concatenated that do not choose for themselves
  std::size_t buffers_held = 1;  ///< how often an output buffer is held besides by the pieces: once, by the call
  const char* did = "returned";  ///< what the replicas did with what is put together
  const detail::CopyTeam* team = nullptr;    ///< shares large copies; without one, the caller makes them alone
  detail::OutputBuffers* outputs = nullptr;  ///< of the call, whose targets results may be written to

  static constexpr std::size_t by_others = ~std::size_t{0} / 2;  ///< for `buffers_held`, so that no buffer is taken

  GatherTarget on_axis(int other) const {
    GatherTarget place = *this;
    place.axis = other;
    return place;
  }

  /// That ran the shard.
  const DeviceId& device(std::size_t shard) const { return devices[plan[shard].device]; }
  /// `shard 1 on host:1, rows [15, 30)`.
  std::string describe(std::size_t shard) const {
    return "shard " + std::to_string(shard) + " on " + to_string(device(shard)) + ", rows " +
           to_string(plan[shard].rows);
  }
  /// The shard's share of all rows; equal shares if there are none.
  double share(std::size_t shard) const {
    return plan.rows() == 0 ? 1.0 / static_cast<double>(plan.size())
                            : static_cast<double>(plan[shard].rows.size()) / static_cast<double>(plan.rows());
  }
  /// Whether the shard has rows, or none of them has. Of no rows there is no mean and no greatest one.
  bool counts(std::size_t shard) const { return plan.rows() == 0 || plan[shard].rows.size() != 0; }
  /// The first shard that counts.
  std::size_t first() const {
    std::size_t shard = 0;
    while (!counts(shard)) ++shard;
    return shard;
  }
};

}}  // namespace fanout::v0
