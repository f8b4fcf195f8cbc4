// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/visible/gpus_on_bus.hpp>

#include <cstddef>
#include <cstdio>
#include <utility>

namespace fanout { inline namespace v0 { namespace cuda::detail {

std::string value_in(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return std::string(without_spaces_around(line.substr(name.size() + 1)));
    }
  }
  return {};
}

std::string text_of_file(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "r")) {
    char buffer[4096];
    text.assign(buffer, std::fread(buffer, 1, sizeof buffer, file));
    std::fclose(file);
  }
  return text;
}

std::optional<std::vector<PhysicalGpu>> gpus_on_bus(const std::string& folder, const std::string& nodes) {
  std::vector<std::string> bus_ids;
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) return {};
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] == '.') continue;
    bus_ids.emplace_back(entry->d_name);
    for (std::size_t i = bus_ids.size() - 1; i > 0 && bus_ids[i] < bus_ids[i - 1]; --i) {
      std::swap(bus_ids[i], bus_ids[i - 1]);
    }
  }
  ::closedir(listing);
  std::vector<PhysicalGpu> found;
  for (const std::string& bus_id : bus_ids) {
    std::string path = folder;
    path.append(1, '/').append(bus_id).append("/information");
    const std::string text = text_of_file(path);
    const std::string uuid = value_in(text, "GPU UUID");
    if (!uuid.starts_with("GPU-") || uuid.find('?') != std::string::npos) return {};  // unknown before the first use
    const bool excluded = value_in(text, "GPU Excluded") == "Yes";
    const std::string node = nodes + value_in(text, "Device Minor");
    if (excluded || ::access(node.c_str(), R_OK | W_OK) != 0) continue;
    found.push_back({.uuid = uuid, .name = value_in(text, "Model")});
  }
  return found;
}

}}}  // namespace fanout::v0::cuda::detail
