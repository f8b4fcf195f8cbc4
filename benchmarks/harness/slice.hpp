// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <harness/cores.hpp>
#include <harness/load.hpp>
#include <harness/report.hpp>
#include <harness/samples.hpp>
#include <harness/ticks.hpp>

namespace benchmarks {

/// One run of one contender in one case, in a process of its own: its arguments `CASE [key=value ...]`, its place on
/// the cores, and what it says. See "The protocol" in benchmarks/README.md.
class Slice {
 public:
  Slice(int argc, char** argv) : argv_(argv), cores_(cores_at_first()) {
    if (argc < 2) fault("usage: " + std::string(argv[0]) + " CASE [key=value ...]");
    name_ = argv[1];
    for (int i = 2; i < argc; ++i) {
      const std::string text = argv[i];
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0) fault("'" + text + "' is not key=value");
      keys_.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    contender_ = text("contender", "default");
    seconds_ = number("seconds", 0.3);
    // OpenBLAS takes a processor that is newer than itself for an old one.
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && std::getenv("OPENBLAS_CORETYPE") == nullptr) {
      environment_.emplace_back("OPENBLAS_CORETYPE", "SKYLAKEX");
    }
#endif
  }

  const std::string& name() const { return name_; }
  /// Which of the family's contenders to run: "default" if nothing was said.
  const std::string& contender() const { return contender_; }
  double seconds() const { return seconds_; }

  /// The value of a key, or what stands for it.
  std::string text(const std::string& key, const std::string& otherwise) {
    known_.insert(key);
    for (const auto& [name, value] : keys_) {
      if (name == key) return value;
    }
    return otherwise;
  }

  double number(const std::string& key, double otherwise) {
    const std::string value = text(key, "");
    if (value.empty()) return otherwise;
    char* end = nullptr;
    const double result = std::strtod(value.c_str(), &end);
    if (*end != '\0') fault(key + "=" + value + " is no number");
    return result;
  }

  /// Call it when all keys have been asked for: one that nobody asked for is a slip.
  void all_keys_read() const {
    for (const auto& [key, value] : keys_) {
      if (!known_.contains(key)) fault("unknown key " + key);
    }
  }

  /// Runtimes read these before main: where one differs, the program starts itself again with them. Call it before
  /// threads are made.
  void environment(std::vector<std::pair<std::string, std::string>> variables = {}) {
    for (auto& variable : variables) environment_.push_back(std::move(variable));
    bool changed = std::getenv(cores_variable) == nullptr;
    setenv(cores_variable, listed(cores_).c_str(), 1);
    for (const auto& [name, value] : environment_) {
      const char* there = std::getenv(name.c_str());
      changed = changed || there == nullptr || there != value;
      setenv(name.c_str(), value.c_str(), 1);
    }
    if (!changed) return;
    execv("/proc/self/exe", argv_);
    fault("cannot start itself again");
  }

  /// The cores of this process, before anything was bound.
  const std::vector<int>& cores() const { return cores_; }
  /// The i-th of them; where there are fewer, they are used again.
  int core(std::size_t i) const { return cores_[i % cores_.size()]; }
  void pin_caller() const { bind_to(core(0)); }

  /// Calls `call` for a tenth of the time to warm up (at least three times), then until the time is over, and reports
  /// how long the calls took. `prepare` runs before each and is not timed.
  template <class Call, class Prepare>
  Report measure(const Call& call, const Prepare& prepare) const {
    const auto time = static_cast<std::int64_t>(seconds_ * 1e9);
    for (std::int64_t i = 0, end = nanoseconds() + time / 10; i < 3 || nanoseconds() < end; ++i) {
      prepare();
      call();
    }
    Samples samples;
    const TickRate rate;
    const Load load;
    const std::int64_t end = nanoseconds() + time;
    do {
      prepare();
      const std::int64_t begin = ticks();
      call();
      samples.add(ticks() - begin);
    } while (nanoseconds() < end);
    return report(samples, load, rate);
  }

  template <class Call>
  Report measure(const Call& call) const {
    return measure(call, [] {});
  }

  /// What every slice says, for those that measure by themselves.
  Report report(const Samples& samples, const Load& load, const TickRate& rate) const {
    const double foreign = load.foreign_share(), cpu = load.cpu_seconds(), wall = load.wall_seconds();
    const std::int64_t timer = ticks_of_timer();
    const double tick = rate.nanoseconds_per_tick();
    Report report;
    report.set("contender", contender_).set("case", name_);
    set_quantiles(report, samples.sorted(tick, timer));
    report.set("samples", samples.count()).set("cpu_s", cpu).set("wall_s", wall).set("foreign_cpu", foreign);
    report.set("cpu_share", cpu / wall).set("timer_ns", static_cast<double>(timer) * tick).set_null("two_threads");
    return report;
  }

  /// Ends the program: it cannot run here.
  [[noreturn]] void skip(const std::string& why) const {
    std::fprintf(stderr, "skipped: %s\n", why.c_str());
    std::exit(77);
  }

  /// Ends the program: it was called wrongly, or a result is wrong.
  [[noreturn]] void fault(const std::string& what) const {
    std::fprintf(stderr, "fault: %s\n", what.c_str());
    std::exit(1);
  }

 private:
  static constexpr const char* cores_variable = "FANOUT_BENCHMARK_CORES";

  static std::string listed(const std::vector<int>& cores) {
    std::string list;
    for (const int core : cores) list += std::to_string(core) + ' ';
    return list;
  }

  /// The process's own cores; where it has started itself again, those of before: OpenMP binds the caller before main.
  static std::vector<int> cores_at_first() {
    const char* list = std::getenv(cores_variable);
    if (list == nullptr) return allowed_cores();
    std::vector<int> cores;
    char* end = nullptr;
    for (long core; core = std::strtol(list, &end, 10), end != list; list = end) {
      cores.push_back(static_cast<int>(core));
    }
    return cores;
  }

  char** argv_;
  std::vector<int> cores_;
  std::string name_;
  std::string contender_;
  double seconds_ = 0;
  std::vector<std::pair<std::string, std::string>> keys_;
  std::set<std::string> known_;
  std::vector<std::pair<std::string, std::string>> environment_;
};

}  // namespace benchmarks
