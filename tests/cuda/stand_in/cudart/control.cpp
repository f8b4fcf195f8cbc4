// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../stand_in.h"

#include <algorithm>

#include "state.hpp"

using namespace stand_in;

namespace {

/// As Call does, for what is no function of CUDA's.
struct Ask {
  Quiet quiet;
  State& all = state();
  std::lock_guard<std::mutex> lock{all.mutex};
};

const char* keep(std::string said) {
  static thread_local std::string kept;
  kept = std::move(said);
  return kept.c_str();
}

int count_blocks(const State& all, Kind kind) {
  return static_cast<int>(std::count_if(all.blocks.begin(), all.blocks.end(),
                                        [&](const auto& entry) { return entry.second->kind == kind; }));
}

}  // namespace

namespace stand_in {

int alive(const State& all, const std::string& kind) {
  if (kind == "streams") return static_cast<int>(all.streams.size());
  if (kind == "events") return static_cast<int>(all.events.size());
  if (kind == "device memory") return count_blocks(all, Kind::device);
  if (kind == "pinned memory") return count_blocks(all, Kind::pinned);
  if (kind == "pools") {
    int count = 0;
    for (const auto& [id, pool] : all.pools) {
      if (pool != device_at(pool->device).default_pool) ++count;
    }
    return count;
  }
  const auto found = all.others_alive.find(kind);
  return found == all.others_alive.end() ? 0 : found->second;
}

}  // namespace stand_in

extern "C" {

void stand_in_set_devices(int count) {
  const Ask ask;
  ask.all.no_driver = count < 0;
  ask.all.count = std::clamp(count, 0, max_devices);
}

void stand_in_set_device(int number, const char* name, size_t bytes, int multiprocessors, int major, int minor) {
  const Ask ask;
  auto& device = device_at(number);
  device.name = name;
  device.total = bytes;
  device.multiprocessors = multiprocessors;
  device.major = major;
  device.minor = minor;
}

void stand_in_set_used_by_others(int device, size_t bytes) {
  const Ask ask;
  device_at(device).others = bytes;
}

void stand_in_set_memory_pools(int device, int supported) {
  const Ask ask;
  device_at(device).pools_supported = supported != 0;
}

void stand_in_set_peer(int one, int other, int able) {
  const Ask ask;
  if (able != 0) {
    ask.all.no_peer.erase(std::minmax(one, other));
  } else {
    ask.all.no_peer.insert(std::minmax(one, other));
  }
}

void stand_in_set_corrupting(int from, int to, int corrupting) {
  const Ask ask;
  if (corrupting == 0) {
    ask.all.corrupting.erase({from, to});
  } else {
    ask.all.corrupting.insert({from, to});
  }
}

const char* stand_in_misuse() {
  const Ask ask;
  std::string said;
  for (const auto& line : ask.all.misuse) said += line + "\n";
  ask.all.misuse.clear();
  return keep(std::move(said));
}

void stand_in_allow_at_exit(const char* kind, int count) {
  const Ask ask;
  ask.all.allowed[kind] = count;
}

int stand_in_alive(const char* kind) {
  const Ask ask;
  return alive(ask.all, kind);
}

void stand_in_fail(const char* function, int nth, int times, int code) {
  const Ask ask;
  ask.all.failures.push_back({function == nullptr ? "" : function, nth - 1, times, code, -1});
}

int stand_in_no_failures() {
  const Ask ask;
  const auto count = static_cast<int>(ask.all.failures.size());
  ask.all.failures.clear();
  return count;
}

void stand_in_poison(int device, int code) {
  const Ask ask;
  device_at(device).poison = code;
}

void stand_in_poison_at(int nth, int device, int code) {
  const Ask ask;
  ask.all.failures.push_back({"", nth - 1, 1, code, device});
}

void stand_in_set_unloading(int unloading) {
  const Ask ask;
  ask.all.unloading = unloading != 0;
}

long stand_in_calls(const char* function) {
  const Ask ask;
  if (function != nullptr) {
    const auto found = ask.all.calls.find(function);
    return found == ask.all.calls.end() ? 0 : found->second;
  }
  long sum = 0;
  for (const auto& [name, count] : ask.all.calls) sum += count;
  return sum;
}

const char* stand_in_functions() {
  const Ask ask;
  std::string said;
  for (const auto& [name, count] : ask.all.calls) said += name + "\n";
  return keep(std::move(said));
}

size_t stand_in_bytes_in_use(int device) {
  const Ask ask;
  return bytes_in_use(device);
}

int stand_in_node_of(const void* pinned) {
  const Ask ask;
  const auto block = find_block(pinned);
  return block ? block->node : -1;
}

long stand_in_copies(const char* kind) {
  const Ask ask;
  return ask.all.copied[kind].copies;
}

size_t stand_in_copied_bytes(const char* kind) {
  const Ask ask;
  return ask.all.copied[kind].bytes;
}

int stand_in_most_copies_at_once() {
  const Ask ask;
  return ask.all.most_copies_at_once;
}

void stand_in_forget_counts() {
  const Ask ask;
  ask.all.calls.clear();
  ask.all.copied.clear();
  ask.all.most_copies_at_once = ask.all.copies_now;
}

int stand_in_has_context(int device) {
  const Ask ask;
  return device_at(device).retained > 0 ? 1 : 0;
}

int stand_in_contexts() {
  const Ask ask;
  return static_cast<int>(std::count_if(ask.all.devices.begin(), ask.all.devices.end(),
                                        [](const Device& device) { return device.had_context; }));
}

int stand_in_current() { return this_thread().depth > 0 ? current_or_chosen() : -1; }

int stand_in_depth() { return this_thread().depth; }

void stand_in_fresh_thread() {
  auto& mine = this_thread();
  mine = {};
}

void stand_in_set_delays(unsigned seed) {
  const Ask ask;
  ask.all.delays = seed;
}

void stand_in_set_copy_cost(unsigned microseconds) {
  const Ask ask;
  ask.all.copy_cost = microseconds;
}

}  // extern "C"
