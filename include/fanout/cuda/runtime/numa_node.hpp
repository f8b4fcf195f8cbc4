// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

#include <fanout/base/requirements.hpp>
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
inline int number_in(std::string_view text) noexcept {
  int number = text.empty() ? -1 : 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    number = 10 * number + (c - '0');
    if (number >= 1 << 20) return -1;
  }
  return number;
}

/// The numbers of a list of the kernel: 0, 1, 2 and 8 for `0-2,8`. Empty for any other text.
inline std::vector<int> numbers_in(std::string_view list) {
  std::vector<int> numbers;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(range.size() == list.size() ? range.size() : range.size() + 1);
    const std::size_t dash = range.find('-');
    const int first = number_in(range.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : number_in(range.substr(dash + 1));
    if (first < 0 || last < first) return {};
    for (int number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

/// True if cores of the machine are on several nodes. `root` is put before all paths, for tests. Source of this and
/// the next: the kernel's Documentation/ABI/stable/sysfs-devices-node and testing/sysfs-bus-pci.
inline bool has_several_nodes(const std::string& root = "") {
  return numbers_in(fanout::detail::first_line(root + "/sys/devices/system/node/has_cpu")).size() > 1;
}

/// The node that a PCI device is attached to: its bus id is `0000:3B:00.0`, as CUDA writes it. No node if the kernel
/// knows none, or if no core of the process is there: then memory near the threads that fill it is better.
inline NumaNode node_of_pci(std::string_view bus_id, const std::string& root = "") {
  NumaNode all;
  std::string path = root + "/sys/bus/pci/devices/";
  for (const char c : bus_id) path += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  NumaNode found{.number = number_in(fanout::detail::first_line(path + "/numa_node")), .cores = {}};
  if (found.number < 0) return all;
  const std::string folder = root + "/sys/devices/system/node/node" + std::to_string(found.number);
  const std::vector<int> there = numbers_in(fanout::detail::first_line(folder + "/cpulist"));
  for (const int core : all.cores) {
    for (const int other : there) {
      if (core == other) found.cores.push_back(core);
    }
  }
  return found.cores.empty() ? all : found;
}

/// The node that a GPU is attached to. No node if the machine has only one, if the GPU cannot be used, and with
/// FANOUT_PIN=off. Only on machines with several nodes, asks the runtime, which makes no context.
inline NumaNode node_of_gpu(const GpuState& gpu, const std::string& root = "") {
  if (fanout::detail::pin_setting() != "on" || !has_several_nodes(root) || !gpu.usable()) return {};
  char bus_id[32] = {};
  const cudaError_t status = ::cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, gpu.index());
  note(status, gpu.index());  // a GPU whose place is not known works as well
  if (status != cudaSuccess) return {};
  return node_of_pci(bus_id, root);
}

}}}  // namespace fanout::v0::cuda::detail
