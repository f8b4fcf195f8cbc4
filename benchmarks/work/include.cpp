// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What it costs to include a library: processor time of a compiler that looks at a file of nothing else. Case include;
// contenders stand in `headers`.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <harness/load.hpp>
#include <harness/samples.hpp>
#include <harness/slice.hpp>
#include <harness/ticks.hpp>

namespace {

struct Headers {
  std::string_view contender;
  std::string_view lines;
};

constexpr Headers headers[] = {
    {"fanout", "#include <fanout/fanout.hpp>\n"},
    {"fwd", "#include <fanout/fwd.hpp>\n"},
    {"standard", "#include <vector>\n#include <thread>\n#include <tuple>\n#include <map>\n"},
    {"future", "#include <future>\n"},
    {"execution", "#include <execution>\n"},
    {"tbb", "#include <tbb/tbb.h>\n"},
    {"thrust", "#include <thrust/device_vector.h>\n#include <thrust/transform.h>\n#include <thrust/reduce.h>\n"},
    {"taskflow", "#include <taskflow/taskflow.hpp>\n"},
    {"stdexec", "#include <stdexec/execution.hpp>\n#include <exec/static_thread_pool.hpp>\n"},
    {"aten", "#include <ATen/ATen.h>\n"},
    {"torch", "#include <torch/torch.h>\n"},
};

/// A folder for one file, which goes with it.
class Folder {
 public:
  Folder() {
    if (mkdtemp(name_) == nullptr) name_[0] = '\0';
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::remove(file().c_str());
    rmdir(name_);
  }
  bool exists() const { return name_[0] != '\0'; }
  std::string file() const { return std::string(name_) + "/unit.cpp"; }

 private:
  char name_[32] = "/tmp/benchmarks_include_XXXXXX";
};

std::int64_t nanoseconds_of(const timeval& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_usec} * 1000;
}

/// Processor time of a command, -1 if it fails.
std::int64_t processor_time(const std::string& command) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) return -1;
  return nanoseconds_of(usage.ru_utime) + nanoseconds_of(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  if (slice.name() != "include") slice.fault("no case " + slice.name());
  slice.all_keys_read();
  const auto* const chosen = std::find_if(std::begin(headers), std::end(headers),
                                          [&](const Headers& all) { return all.contender == slice.contender(); });
  if (chosen == std::end(headers)) slice.fault("no contender " + slice.contender());
  const Folder folder;
  std::FILE* const file = folder.exists() ? std::fopen(folder.file().c_str(), "w") : nullptr;
  if (file == nullptr) slice.skip("no file can be made in /tmp");
  std::fwrite(chosen->lines.data(), 1, chosen->lines.size(), file);
  std::fclose(file);

  const std::string command =
      BENCHMARKS_COMPILER " -std=c++20 -fsyntax-only -w " BENCHMARKS_INCLUDES " " + folder.file() + " 2> /dev/null";
  std::vector<double> times;
  std::int64_t all = 0;
  const benchmarks::TickRate rate;
  const benchmarks::Load load;
  do {
    const std::int64_t time = processor_time(command);
    if (time < 0) slice.skip("its headers are not there, or do not compile");
    times.push_back(static_cast<double>(time));
    all += time;
  } while (load.wall_seconds() < slice.seconds());
  std::sort(times.begin(), times.end());

  benchmarks::Samples none;
  none.add(0);
  benchmarks::Report report = slice.report(none, load, rate);
  // What the compiler used is not foreign.
  const double used = 1e-9 * static_cast<double>(all);
  const double wall = report.value_of("wall_s");
  benchmarks::set_quantiles(report, times);
  report.set("samples", times.size()).set("timer_ns", 0).set("cpu_s", used).set("cpu_share", used / wall);
  report.set("foreign_cpu", std::max(0.0, report.value_of("foreign_cpu") - used / wall)).print();
}
