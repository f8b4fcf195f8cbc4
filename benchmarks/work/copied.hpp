// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <harness/report.hpp>

namespace benchmarks {

/// Each call put this many bytes somewhere else. The rate counts each byte once, though it is read and written.
inline Report& set_copied(Report& report, double bytes) {
  return report.set("bytes", bytes).set("gb_per_s", bytes / report.value_of("median_ns"));
}

}  // namespace benchmarks
