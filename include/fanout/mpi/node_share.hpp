// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <mpi.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/mpi/group/mpi_mail.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What one rank has of its node: which of the ranks there it is, and which of those that may run on the same cores.
class NodeShare {
 public:
  /// All ranks of the group make one at the same time.
  FANOUT_INLINE explicit NodeShare(const MpiGroup& group);

  /// This rank's part of the cores that it shares with others of the node: `count` devices, or one for each core.
  FANOUT_INLINE DeviceSet<HostDevice> host_devices(std::size_t count) const;

  /// This rank's part of the devices that the processes of the node see: `count` devices, or an equal share. Ranks that
  /// see one device each use that one.
  template <Device D>
  DeviceSet<D> devices(std::size_t count) const {
    const std::vector<D> visible = D::visible();
    const std::size_t all = visible.size();
    if (all == 0) {
      throw InvalidDeviceId(
          explain({.what = "no device for a rank", .where = "Ranks::devices", .found = "none visible"}));
    }
    std::size_t begin = rank_ * count;
    if (count == 0) {
      const RowRange share = all < size_ ? RowRange{rank_ % all, rank_ % all + 1} : EvenParts(all, size_)[rank_];
      begin = share.first;
      count = share.size();
    }
    if (begin + count > all) {
      throw InvalidDeviceId(explain({.what = "ranks of a node asked for more devices than it has",
                                     .where = "Ranks::devices",
                                     .expected = std::to_string(begin + count) + " or more",
                                     .found = std::to_string(all),
                                     .advice = "start fewer ranks for each node, or ask for fewer devices"}));
    }
    const auto first = visible.begin() + static_cast<std::ptrdiff_t>(begin);
    return DeviceSet<D>(std::vector<D>(first, first + static_cast<std::ptrdiff_t>(count)));
  }

 private:
  /// `own`: a hash of the cores. `all`: room for those of all ranks.
  FANOUT_INLINE void compare(MPI_Comm node, std::uint64_t own, std::vector<std::uint64_t>& all);

  std::vector<int> cores_;
  std::size_t rank_ = 0;  // among the ranks of the node
  std::size_t size_ = 1;
  std::size_t equal_rank_ = 0;  // among those of them that may run on the same cores
  std::size_t equal_size_ = 1;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/node_share.ipp>
#endif
