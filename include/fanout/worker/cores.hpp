// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The cores that this process may use, as the kernel numbers them: the affinity mask of its first thread. So it does
/// not matter which thread asks. Never empty.
[[gnu::cold]] FANOUT_INLINE std::vector<int> process_cores();

/// The environment variable FANOUT_PIN: "on" if it is not set.
[[gnu::cold]] FANOUT_INLINE std::string_view pin_setting() noexcept;

/// False with FANOUT_PIN=off. Throws InvalidArgument if it is neither on nor off.
[[gnu::cold]] FANOUT_INLINE bool pinning_allowed();

/// The first line of a file, empty if it cannot be read.
[[gnu::cold]] FANOUT_INLINE std::string first_line(const std::string& path);

/// The smaller of two limits. 0 is no limit.
inline std::size_t tighter(std::size_t a, std::size_t b) { return a == 0 || (b != 0 && b < a) ? b : a; }

/// The number of cores that the process's control group lets it keep busy: the tightest CPU quota from its own group up
/// to the root, of cgroup v2 (`cpu.max`) or v1 (`cpu.cfs_quota_us`). 0 if there is none. `root` is put before all
/// paths, for tests. Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.
[[gnu::cold]] FANOUT_INLINE std::size_t quota_cores(const std::string& root = "");

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/cores.ipp>
#endif
