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
#include <fanout/base/text.hpp>
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
                                 .found = Text() << '"' << setting << '"',
                                 .advice = "unset it or set one of these"}));
}

/// Reads the next line. Returns false at the end of the file.
inline bool read_line(std::FILE* file, std::string& line) {
  char* text = nullptr;
  std::size_t room = 0;
  const ssize_t read = ::getline(&text, &room, file);
  const auto length = static_cast<std::size_t>(read > 0 ? read : 0);
  line.assign(text, length != 0 && text[length - 1] == '\n' ? length - 1 : length);
  std::free(text);
  return length != 0;
}

std::string first_line(const std::string& path) {
  std::string line;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    read_line(file, line);
    std::fclose(file);
  }
  return line;
}

/// Reads the numbers at the begin of a file. Returns how many there are, at most two.
[[gnu::cold, gnu::noinline]] inline int numbers_in(std::string_view folder, const char* name, double& first,
                                                   double& second) {
  const std::string path = Text() << folder << name;
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  const int count = std::fscanf(file, "%lf %lf", &first, &second);
  std::fclose(file);
  return count;
}

/// The cores for the quota of a control group: microseconds of run time in each period, rounded up, since a part of a
/// core counts as one. 0: no limit.
inline std::size_t cores_of_group(std::string_view folder, bool v2) {
  double run = 0;
  double period = 0;
  if (v2) {
    if (numbers_in(folder, "/cpu.max", run, period) != 2) return 0;  // "max 100000", say
  } else {
    double none = 0;
    if (numbers_in(folder, "/cpu.cfs_quota_us", run, none) != 1) return 0;
    if (numbers_in(folder, "/cpu.cfs_period_us", period, none) != 1) return 0;
  }
  if (!(run > 0) || !(period > 0) || run / period > 1e6) return 0;
  const auto whole = static_cast<std::size_t>(run / period);
  return static_cast<double>(whole) * period < run ? whole + 1 : whole;
}

/// The tightest limit of a group and of those around it.
inline std::size_t cores_of_groups(std::string_view mount, std::string_view path, bool v2) {
  std::size_t cores = 0;
  while (true) {
    if (path.ends_with('/')) path.remove_suffix(1);
    cores = tighter(cores, cores_of_group(Text() << mount << path, v2));
    if (path.empty()) return cores;
    const std::size_t last = path.rfind('/');
    path = path.substr(0, last == std::string_view::npos ? 0 : last);
  }
}

std::size_t quota_cores(const std::string& root) {
  const std::string list = Text() << root << "/proc/self/cgroup";
  std::FILE* groups = std::fopen(list.c_str(), "re");
  if (groups == nullptr) return 0;
  std::size_t cores = 0;
  for (std::string line; read_line(groups, line);) {
    // hierarchy:controllers:path, with no controllers named for v2
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const bool v2 = second == first + 1;
    line[first] = line[second] = ',';
    if (!v2 && std::string_view(line).substr(first, second + 1 - first).find(",cpu,") == std::string::npos) continue;
    const Text mount = Text() << root << (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    cores = tighter(cores, cores_of_groups(mount, std::string_view(line).substr(second + 1), v2));
  }
  std::fclose(groups);
  return cores;
}

}}}  // namespace fanout::v0::detail
