// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/worker/cores.hpp>
#include <fanout/worker/registry.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// A NUMA node of the host: its number in the kernel, and the process's cores on it. Or no node in particular, with all
/// cores of the process.
struct NumaNode {
  static constexpr int none = -1;

  int number = none;
  std::vector<int> cores = backend::registry().cores();
};

/// A decimal number below 2^20, which is more than the kernel has cores or nodes. -1 for any other text.
FANOUT_INLINE int number_in(std::string_view text) noexcept;

/// The numbers of a list of the kernel: 0, 1, 2 and 8 for `0-2,8`. Empty for any other text.
FANOUT_INLINE std::vector<int> numbers_in(std::string_view list);

/// True if cores of the machine are on several nodes. `root` is put before all paths, for tests. Source of this and
/// the next: the kernel's Documentation/ABI/stable/sysfs-devices-node and testing/sysfs-bus-pci.
inline bool has_several_nodes(const std::string& root = "") {
  return numbers_in(fanout::detail::first_line(root + "/sys/devices/system/node/has_cpu")).size() > 1;
}

/// The node that a PCI device is attached to: its bus id is `0000:3B:00.0`, as CUDA writes it. No node if the kernel
/// knows none, or if no core of the process is there: then memory near the threads that fill it is better.
FANOUT_INLINE NumaNode node_of_pci(std::string_view bus_id, const std::string& root = "");

/// The node that a GPU is attached to. No node if the machine has only one, if the GPU cannot be used, and with
/// FANOUT_PIN=off. Only on machines with several nodes, asks the runtime, which makes no context.
FANOUT_INLINE NumaNode node_of_gpu(const GpuState& gpu, const std::string& root = "");

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/numa_node.ipp>
#endif
