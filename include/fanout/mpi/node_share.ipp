// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/node_share.hpp>

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/worker/cores.hpp>

namespace fanout { inline namespace v0 { namespace detail {

NodeShare::NodeShare(const MpiGroup& group) {
  const MpiGroup::Exchange exchange(group);
  std::uint64_t own = 0;
  std::vector<std::uint64_t> all;
  group.agree(MpiGroup::exception_of([&] {
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

DeviceSet<HostDevice> NodeShare::host_devices(std::size_t count) const {
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

void NodeShare::compare(MPI_Comm node, std::uint64_t own, std::vector<std::uint64_t>& all) {
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

}}}  // namespace fanout::v0::detail
