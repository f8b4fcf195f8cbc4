// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/worker/cores.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What one rank has of its node: which of the ranks there it is, and which of those that may run on the same cores.
class NodeShare {
 public:
  /// All ranks of the group make one at the same time.
  explicit NodeShare(const RankGroup& group) {
    const RankGroup::Exchange exchange(group);
    std::uint64_t own = 0;
    std::vector<std::uint64_t> all;
    group.agree(RankGroup::exception_of([&] {
      cores_ = process_cores();
      std::string text;
      for (const int core : cores_) text += std::to_string(core) + ' ';
      own = std::hash<std::string>()(text);
      all.resize(static_cast<std::size_t>(group.size()));
    }));
    MPI_Comm node = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(group.get(), MPI_COMM_TYPE_SHARED, group.rank(), MPI_INFO_NULL, &node),
              "MPI_Comm_split_type");
    try {
      compare(node, own, all);
    } catch (...) {
      MPI_Comm_free(&node);
      throw;
    }
    check_mpi(MPI_Comm_free(&node), "MPI_Comm_free");
  }

  /// This rank's part of the cores that it shares with others of the node: `count` devices, or one for each core.
  DeviceSet<HostDevice> host_devices(std::size_t count) const {
    const std::size_t cores = cores_.size();
    const std::size_t machine = std::max<std::size_t>(std::thread::hardware_concurrency(), cores);
    if (count > cores && cores < machine) {
      throw InvalidArgument(explain(
          {.what = "a rank asked for more host devices than the cores that it is bound to",
           .expected = std::to_string(count) + " cores or more",
           .found = std::to_string(cores) + " of the machine's " + std::to_string(machine),
           .advice = "start it with mpirun --bind-to none or --map-by slot:PE=" + std::to_string(count) +
                     " (Open MPI), mpiexec -bind-to none (MPICH), or srun --cpus-per-task=" + std::to_string(count)}));
    }
    std::size_t all = count * equal_size_;
    std::size_t begin = equal_rank_ * count;
    if (count == 0) {
      all = std::max(static_cast<std::size_t>(host_device_count()), equal_size_);
      const RowRange share = EvenParts(all, equal_size_)[equal_rank_];
      begin = share.first;
      count = share.size();
    }
    // As if one process had the devices of all these ranks: so no two of them share a core if there are enough.
    const DeviceSet<HostDevice> devices = fanout::host_devices({.count = static_cast<int>(all)});
    std::vector<HostDevice> own;
    for (std::size_t i = 0; i < count; ++i) own.push_back(devices[begin + i]);
    return DeviceSet<HostDevice>(std::move(own));
  }

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
  void compare(MPI_Comm node, std::uint64_t own, std::vector<std::uint64_t>& all) {
    int rank = 0;
    int size = 1;
    check_mpi(MPI_Comm_rank(node, &rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(node, &size), "MPI_Comm_size");
    rank_ = static_cast<std::size_t>(rank);
    size_ = static_cast<std::size_t>(size);
    check_mpi(MPI_Allgather(&own, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, node), "MPI_Allgather");
    equal_size_ = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (i == rank_) equal_rank_ = equal_size_;
      if (all[i] == own) ++equal_size_;
    }
  }

  std::vector<int> cores_;
  std::size_t rank_ = 0;  // among the ranks of the node
  std::size_t size_ = 1;
  std::size_t equal_rank_ = 0;  // among those of them that may run on the same cores
  std::size_t equal_size_ = 1;
};

}}}  // namespace fanout::v0::detail
