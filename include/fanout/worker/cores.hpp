// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <unistd.h>

#include <fanout/base/error.hpp>
#include <fanout/worker/system_threads.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// What follows are templates, so that they cost nothing to compile in a file that makes no devices. Cores is always
// std::vector<int>, and Text std::string.

/// The cores that this process may use, as the kernel numbers them: the affinity mask of its first thread. So it does
/// not matter which thread asks. Never empty.
template <class Cores = std::vector<int>>
Cores process_cores() {
  auto cores = SystemThreads::process_cores<Cores>();
  if (cores.empty()) {
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    for (int core = 0; core == 0 || core < online; ++core) cores.push_back(core);
  }
  return cores;
}

/// The environment variable FANOUT_PIN: "on" if it is not set.
inline std::string_view pin_setting() noexcept {
  const char* setting = std::getenv("FANOUT_PIN");
  return setting == nullptr ? "on" : setting;
}

/// False with FANOUT_PIN=off. Throws InvalidArgument if it is neither on nor off.
template <class Text = std::string>
bool pinning_allowed() {
  const std::string_view setting = pin_setting();
  if (setting == "on" || setting == "off") return setting == "on";
  throw InvalidArgument(explain({.what = "environment variable FANOUT_PIN",
                                 .expected = "on or off",
                                 .found = '"' + Text(setting) + '"',
                                 .advice = "unset it or set one of these"}));
}

/// The first line of a file, empty if it cannot be read.
template <class Text>
Text first_line(const Text& path) {
  Text line;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    for (int c = std::fgetc(file); c != EOF && c != '\n'; c = std::fgetc(file)) line += static_cast<char>(c);
    std::fclose(file);
  }
  return line;
}

/// The cores for `quota` microseconds of run time in each `period`, rounded up, since a part of a core counts as one.
/// 0: no limit.
template <class Text>
std::size_t cores_for_quota(const Text& quota, const Text& period) {
  const double run = std::strtod(quota.c_str(), nullptr);
  const double of = std::strtod(period.c_str(), nullptr);
  if (!(run > 0) || !(of > 0) || run / of > 1e6) return 0;
  const auto whole = static_cast<std::size_t>(run / of);
  return static_cast<double>(whole) * of < run ? whole + 1 : whole;
}

/// The smaller of two limits. 0 is no limit.
inline std::size_t tighter(std::size_t a, std::size_t b) { return a == 0 || (b != 0 && b < a) ? b : a; }

/// The number of cores that the process's control group lets it keep busy: the tightest CPU quota from its own group up
/// to the root, of cgroup v2 (`cpu.max`) or v1 (`cpu.cfs_quota_us`). 0 if there is none. `root` is put before all
/// paths, for tests. Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.
template <class Text = std::string>
std::size_t quota_cores(const std::type_identity_t<Text>& root = "") {
  std::size_t cores = 0;
  std::FILE* groups = std::fopen((root + "/proc/self/cgroup").c_str(), "re");
  if (groups == nullptr) return 0;
  Text line;
  for (int c = std::fgetc(groups); c != EOF; c = std::fgetc(groups)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    // hierarchy:controllers:path, with no controllers named for v2
    const std::size_t first = line.find(':');
    const std::size_t second = first == Text::npos ? first : line.find(':', first + 1);
    if (second != Text::npos) {
      const Text controllers = "," + line.substr(first + 1, second - first - 1) + ",";
      const bool v2 = controllers == ",,";
      const bool v1 = controllers.find(",cpu,") != Text::npos;
      const Text mount = root + "/sys/fs/cgroup" + (v1 ? "/cpu" : "");
      Text path = line.substr(second + 1);
      for (bool more = v1 || v2; more;) {
        if (!path.empty() && path.back() == '/') path.pop_back();
        if (v2) {
          const Text limit = first_line(mount + path + "/cpu.max");
          const std::size_t space = limit.find(' ');
          if (space != Text::npos) {
            cores = tighter(cores, cores_for_quota(limit.substr(0, space), limit.substr(space + 1)));
          }
        } else {
          cores = tighter(cores, cores_for_quota(first_line(mount + path + "/cpu.cfs_quota_us"),
                                                 first_line(mount + path + "/cpu.cfs_period_us")));
        }
        more = !path.empty();
        path.resize(path.find('/') == Text::npos ? 0 : path.rfind('/'));
      }
    }
    line.clear();
  }
  std::fclose(groups);
  return cores;
}

}}}  // namespace fanout::v0::detail
