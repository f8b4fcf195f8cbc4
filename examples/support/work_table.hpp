// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace examples {

/// Runs from when it is made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// What each device did over many calls.
class WorkTable {
 public:
  /// The devices by their names, in the order in which they are printed.
  explicit WorkTable(const auto& device_ids) {
    for (const auto& id : device_ids) lines_.push_back({.device = to_string(id)});
  }

  /// One call: for each shard its device, and the rows and seconds that this spent.
  void add(const auto& devices, const auto& rows, const auto& seconds) {
    for (std::size_t shard = 0; shard < rows.size(); ++shard) {
      for (Line& line : lines_) {
        if (line.device != devices[shard]) continue;
        line.rows += rows[shard];
        line.seconds += seconds[shard];
      }
    }
  }

  /// `total` seconds were spent in all.
  void print(double total) const {
    std::printf("device         rows  share of the time\n");
    for (const Line& line : lines_) {
      std::printf("%-8s %10zu %16.1f %%\n", line.device.c_str(), line.rows, 100 * line.seconds / total);
    }
  }

 private:
  struct Line {
    std::string device;
    std::size_t rows = 0;
    double seconds = 0;
  };
  std::vector<Line> lines_;
};

}  // namespace examples
