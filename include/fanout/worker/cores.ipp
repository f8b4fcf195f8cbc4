// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/cores.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fanout/base/error.hpp>
#include <fanout/worker/system_threads.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::vector<int> process_cores() {
  std::vector<int> cores = SystemThreads::process_cores();
  if (cores.empty()) {
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    for (int core = 0; core == 0 || core < online; ++core) cores.push_back(core);
  }
  return cores;
}

std::string_view pin_setting() noexcept {
  const char* setting = std::getenv("FANOUT_PIN");
  return setting == nullptr ? "on" : setting;
}

bool pinning_allowed() {
  const std::string_view setting = pin_setting();
  if (setting == "on" || setting == "off") return setting == "on";
  throw InvalidArgument(explain({.what = "environment variable FANOUT_PIN",
                                 .expected = "on or off",
                                 .found = '"' + std::string(setting) + '"',
                                 .advice = "unset it or set one of these"}));
}

std::string first_line(const std::string& path) {
  std::string line;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    for (int c = std::fgetc(file); c != EOF && c != '\n'; c = std::fgetc(file)) line += static_cast<char>(c);
    std::fclose(file);
  }
  return line;
}

/// The cores for `quota` microseconds of run time in each `period`, rounded up, since a part of a core counts as one.
/// 0: no limit.
inline std::size_t cores_for_quota(const std::string& quota, const std::string& period) {
  const double run = std::strtod(quota.c_str(), nullptr);
  const double of = std::strtod(period.c_str(), nullptr);
  if (!(run > 0) || !(of > 0) || run / of > 1e6) return 0;
  const auto whole = static_cast<std::size_t>(run / of);
  return static_cast<double>(whole) * of < run ? whole + 1 : whole;
}

std::size_t quota_cores(const std::string& root) {
  std::size_t cores = 0;
  std::FILE* groups = std::fopen((root + "/proc/self/cgroup").c_str(), "re");
  if (groups == nullptr) return 0;
  std::string line;
  for (int c = std::fgetc(groups); c != EOF; c = std::fgetc(groups)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    // hierarchy:controllers:path, with no controllers named for v2
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second != std::string::npos) {
      const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
      const bool v2 = controllers == ",,";
      const bool v1 = controllers.find(",cpu,") != std::string::npos;
      const std::string mount = root + "/sys/fs/cgroup" + (v1 ? "/cpu" : "");
      std::string path = line.substr(second + 1);
      for (bool more = v1 || v2; more;) {
        if (!path.empty() && path.back() == '/') path.pop_back();
        if (v2) {
          const std::string limit = first_line(mount + path + "/cpu.max");
          const std::size_t space = limit.find(' ');
          if (space != std::string::npos) {
            cores = tighter(cores, cores_for_quota(limit.substr(0, space), limit.substr(space + 1)));
          }
        } else {
          cores = tighter(cores, cores_for_quota(first_line(mount + path + "/cpu.cfs_quota_us"),
                                                 first_line(mount + path + "/cpu.cfs_period_us")));
        }
        more = !path.empty();
        path.resize(path.find('/') == std::string::npos ? 0 : path.rfind('/'));
      }
    }
    line.clear();
  }
  std::fclose(groups);
  return cores;
}

}}}  // namespace fanout::v0::detail
