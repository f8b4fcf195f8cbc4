// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include <fanout/worker/registry.hpp>

#include "support/fake_root.hpp"

namespace fanout_test {

/// The sysfs of a machine with two NUMA nodes. The process's first core is on node 0, the others are on node 1. If the
/// process has one core, it is on node 1. The stand-in's GPU 0 is where put() says.
class TwoNodes {
 public:
  TwoNodes() {
    write("/sys/devices/system/node/has_cpu", "0-1\n");
    const std::vector<int>& cores = fanout::backend::registry().cores();
    std::string others;
    for (const int core : cores) {
      if (core == cores.front() && cores.size() > 1) continue;
      others += (others.empty() ? "" : ",") + std::to_string(core);
      second_.push_back(core);
    }
    if (cores.size() > 1) first_.push_back(cores.front());
    write("/sys/devices/system/node/node0/cpulist", first_.empty() ? "\n" : std::to_string(first_[0]) + '\n');
    write("/sys/devices/system/node/node1/cpulist", others + '\n');
  }

  const std::string& path() const { return root_.path(); }
  void write(const std::string& name, const std::string& text) const { root_.write(name, text); }
  /// Says of the stand-in's GPU 0 that it is on this node; -1: unknown.
  void put(int node) const { write("/sys/bus/pci/devices/0000:10:00.0/numa_node", std::to_string(node) + '\n'); }

  /// The process's cores on node 0, which may be none, and on node 1.
  const std::vector<int>& first() const { return first_; }
  const std::vector<int>& second() const { return second_; }

 private:
  FakeRoot root_;
  std::vector<int> first_;
  std::vector<int> second_;
};

}  // namespace fanout_test
