// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The environment at the start, and the reckoning at the end.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "state.hpp"

namespace stand_in {

int alive(const State& all, const std::string& kind);

namespace {

std::vector<std::string> words(const char* variable) {
  std::vector<std::string> result;
  const char* const value = std::getenv(variable);
  std::istringstream stream(value == nullptr ? "" : value);
  for (std::string word; std::getline(stream, word, ',');) result.push_back(word);
  return result;
}

std::set<std::pair<int, int>> pairs(const char* variable) {
  std::set<std::pair<int, int>> result;
  for (const auto& word : words(variable)) {
    int one = 0, other = 0;
    if (std::sscanf(word.c_str(), "%d-%d", &one, &other) != 2) {
      std::fprintf(stderr, "%s: expected pairs such as 0-1, found %s\n", variable, word.c_str());
      std::_Exit(99);
    }
    result.emplace(one, other);
  }
  return result;
}

/// The list ends at the first number that is no device, as with the real one.
std::vector<int> visible(int count) {
  std::vector<int> result;
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    for (int i = 0; i < count; ++i) result.push_back(i);
    return result;
  }
  for (const auto& word : words("CUDA_VISIBLE_DEVICES")) {
    char* end = nullptr;
    const long number = std::strtol(word.c_str(), &end, 10);
    if (end == word.c_str() || number < 0 || number >= count) break;
    if (std::find(result.begin(), result.end(), number) != result.end()) return {};  // twice: none at all
    result.push_back(static_cast<int>(number));
  }
  return result;
}

/// The sizes of what is left.
std::string detail(const State& all, const std::string& kind) {
  std::string said;
  for (const auto& [address, block] : all.blocks) {
    if (kind != (block->kind == Kind::device ? "device memory" : "pinned memory")) continue;
    said += (said.empty() ? ": " : ", ") + std::to_string(block->bytes) + " bytes of " + device_text(block->device);
    if (said.size() > 300) return said + ", ...";
  }
  return said;
}

void at_exit() {
  auto& all = state();
  if (all.forked) return;
  std::vector<std::string> wrong;
  {
    const Quiet quiet;
    const std::lock_guard lock(all.mutex);
    all.unloading = true;
    wrong = all.misuse;
    std::vector<std::string> kinds{"streams", "events", "pools", "device memory", "pinned memory"};
    for (const auto& [kind, count] : all.others_alive) kinds.push_back(kind);
    for (const auto& kind : kinds) {
      const int left = alive(all, kind);
      const auto allowed = all.allowed.find(kind);
      if (left == 0 || (allowed != all.allowed.end() && (allowed->second < 0 || left <= allowed->second))) continue;
      wrong.push_back("at exit: " + kind + ", " + std::to_string(left) + " left" + detail(all, kind));
    }
  }
  if (wrong.empty()) return;
  std::fflush(nullptr);
  for (const auto& line : wrong) std::fprintf(stderr, "CUDA stand-in: %s\n", line.c_str());
  std::fflush(nullptr);
  _exit(99);
}

}  // namespace

void read_environment(State& all) {
  int there = 2;
  if (const char* const count = std::getenv("FANOUT_STAND_IN_DEVICES")) {
    all.no_driver = std::strcmp(count, "none") == 0;
    there = all.no_driver ? 0 : std::clamp(std::atoi(count), 0, max_devices);
  }
  for (int i = 0; i < max_devices; ++i) all.devices[static_cast<std::size_t>(i)].physical = i;
  const auto chosen = visible(there);
  all.count = static_cast<int>(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) all.devices[i].physical = chosen[i];
  for (auto& device : all.devices) device.name = "Stand-in " + std::to_string(device.physical);
  if (const char* const seed = std::getenv("FANOUT_STAND_IN_DELAYS")) {
    all.delays = static_cast<unsigned>(std::strtoul(seed, nullptr, 10));
  }
  if (const char* const cost = std::getenv("FANOUT_STAND_IN_COPY_US")) {
    all.copy_cost = static_cast<unsigned>(std::strtoul(cost, nullptr, 10));
  }
  for (const auto& [one, other] : pairs("FANOUT_STAND_IN_NO_PEER")) all.no_peer.insert(std::minmax(one, other));
  all.corrupting = pairs("FANOUT_STAND_IN_CORRUPT");
  for (auto word : words("FANOUT_STAND_IN_ALLOW")) {
    int count = -1;
    if (const auto equals = word.find('='); equals != std::string::npos) {
      count = std::atoi(word.c_str() + equals + 1);
      word.resize(equals);
    }
    all.allowed[word] = count;
  }
  std::atexit(at_exit);
}

}  // namespace stand_in
