// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/numa_node.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace cuda::detail {

int number_in(std::string_view text) noexcept {
  int number = text.empty() ? -1 : 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    number = 10 * number + (c - '0');
    if (number >= 1 << 20) return -1;
  }
  return number;
}

std::vector<int> numbers_in(std::string_view list) {
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

NumaNode node_of_pci(std::string_view bus_id, const std::string& root) {
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

NumaNode node_of_gpu(const GpuState& gpu, const std::string& root) {
  if (fanout::detail::pin_setting() != "on" || !has_several_nodes(root) || !gpu.usable()) return {};
  char bus_id[32] = {};
  const cudaError_t status = ::cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, gpu.index());
  note(status, gpu.index());  // a GPU whose place is not known works as well
  if (status != cudaSuccess) return {};
  return node_of_pci(bus_id, root);
}

}}}  // namespace fanout::v0::cuda::detail
