// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <harness/slice.hpp>

namespace benchmarks {

/// For two threads, each bound to its core. Contenders active and passive wait as OMP_WAIT_POLICY says, all others as
/// the runtime does by itself.
inline std::vector<std::pair<std::string, std::string>> openmp_environment(const Slice& slice) {
  std::vector<std::pair<std::string, std::string>> variables{
      {"OMP_NUM_THREADS", "2"},
      {"OMP_DYNAMIC", "false"},
      {"OMP_PROC_BIND", "true"},
      {"OMP_PLACES", '{' + std::to_string(slice.core(0)) + "},{" + std::to_string(slice.core(1)) + '}'}};
  if (slice.contender() == "active" || slice.contender() == "passive") {
    variables.emplace_back("OMP_WAIT_POLICY", slice.contender());
  }
  return variables;
}

}  // namespace benchmarks
