// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <harness/report.hpp>
#include <harness/slice.hpp>

namespace benchmarks {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// The environment, and with the key counts=1 what loads the library that counts allocations. A run is counted or
/// timed, not both: the figures of time of one that is counted are worthless.
inline Environment with_counts(Slice& slice, Environment environment = {}) {
  if (slice.number("counts", 0) != 0) environment.emplace_back("LD_PRELOAD", BENCHMARKS_COUNTS);
  return environment;
}

/// Per call, in the steady state: the median over windows of 10 calls.
template <class Call>
void set_counts(const Slice& slice, Report& report, const Call& call) {
  using Allocations = long();
  auto* const allocations = reinterpret_cast<Allocations*>(dlsym(RTLD_DEFAULT, "benchmarks_allocations"));
  if (allocations == nullptr) slice.fault("the library that counts allocations was not loaded");
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
  };
  constexpr std::size_t windows = 5;
  constexpr int calls = 10;
  double allocated[windows];
  double faulted[windows];
  for (std::size_t window = 0; window < windows; ++window) {
    const long allocations_before = allocations();
    const long faults_before = faults();
    for (int i = 0; i < calls; ++i) call();
    faulted[window] = static_cast<double>(faults() - faults_before) / calls;
    allocated[window] = static_cast<double>(allocations() - allocations_before) / calls;
  }
  std::sort(allocated, allocated + windows);
  std::sort(faulted, faulted + windows);
  report.set("allocations", allocated[windows / 2]).set("faults", faulted[windows / 2]);
}

/// The times of the call, and with counts=1 what it allocates.
template <class Call, class Prepare>
Report measure_and_count(Slice& slice, const Call& call, const Prepare& prepare) {
  const bool counts = slice.number("counts", 0) != 0;
  slice.all_keys_read();
  Report report = slice.measure(call, prepare);
  if (counts) set_counts(slice, report, call);
  return report;
}
template <class Call>
Report measure_and_count(Slice& slice, const Call& call) {
  return measure_and_count(slice, call, [] {});
}

}  // namespace benchmarks
