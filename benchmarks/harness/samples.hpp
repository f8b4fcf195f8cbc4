// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <harness/report.hpp>

namespace benchmarks {

/// Times of calls, in ticks: the latest 65,536 and the number of all. Its memory is touched when it is made.
class Samples {
 public:
  void add(std::int64_t ticks) { kept_[count_++ % kept_.size()] = ticks; }
  std::size_t count() const { return count_; }

  /// In nanoseconds, in ascending order, without what reading the clock costs.
  std::vector<double> sorted(double nanoseconds_per_tick, std::int64_t timer) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < std::min(count_, kept_.size()); ++i) {
      values.push_back(static_cast<double>(std::max<std::int64_t>(kept_[i] - timer, 0)) * nanoseconds_per_tick);
    }
    std::sort(values.begin(), values.end());
    return values;
  }

 private:
  std::vector<std::int64_t> kept_ = std::vector<std::int64_t>(std::size_t{1} << 16, 1);
  std::size_t count_ = 0;
};

/// The value below which this share of the values lie, which are sorted and not none.
inline double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Prints a line with the median and the quartiles of values in any order.
inline void print_quartiles(const std::string& name, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  std::printf("  %-44s %9.3f %s   quartiles %9.3f to %9.3f\n", name.c_str(), quantile(values, 0.5), unit,
              quantile(values, 0.25), quantile(values, 0.75));
}

/// Median and the like of these, as PREFIXmedian_ns, PREFIXp10_ns and so on.
inline void set_quantiles(Report& report, const std::vector<double>& sorted, const std::string& prefix = "") {
  report.set(prefix + "median_ns", quantile(sorted, 0.5));
  report.set(prefix + "p10_ns", quantile(sorted, 0.1));
  report.set(prefix + "p90_ns", quantile(sorted, 0.9));
  report.set(prefix + "p99_ns", quantile(sorted, 0.99));
  report.set(prefix + "mean_ns", mean(sorted));
}

}  // namespace benchmarks
