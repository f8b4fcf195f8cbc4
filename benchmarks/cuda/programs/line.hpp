// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/cuda.hpp>

#include "benchmarks/cuda/compare.hpp"
#include "examples/support/arguments.hpp"

namespace benchmarks {

/// The one line that a program prints: its name, a verdict, and ratios with the range that each must be in. It has no
/// times, so lines of different GPUs, and of the stand-in, can be compared.
class Line {
 public:
  explicit Line(std::string name) : name_(std::move(name)) {}

  /// Adds a number to the line. It does not change the verdict.
  void tell(const char* key, double value) { text_ += std::string(" ") + key + '=' + digits(value, 2); }

  /// Adds a ratio to the line. The verdict is "slow" if the ratio is not in this range.
  void ratio(const char* key, double value, double least, double most) {
    tell(key, value);
    text_ += '(' + digits(least, 1) + ".." + digits(most, 1) + ')';
    if (!(value >= least && value <= most)) slow_ = true;
  }

  /// How many of `all` numbers are right. The verdict is "wrong" if one is not.
  void right(std::size_t wrong, std::size_t all) {
    wrong_ += wrong;
    checked_ += all;
  }

  void need(bool so) { right(so ? 0 : 1, 1); }

  /// Prints the line. Returns the exit status: 0, or 1 if it is "slow" or "wrong".
  int print(bool any_speed) const {
    const char* const verdict = wrong_ > 0 || checked_ == 0 ? "wrong" : slow_ ? "slow" : "ok";
    std::printf("%s %s right=%s%s\n", name_.c_str(), verdict, wrong_ == 0 && checked_ > 0 ? "all" : "some",
                text_.c_str());
    return verdict[0] == 'o' || (verdict[0] == 's' && any_speed) ? 0 : 1;
  }

 private:
  static std::string digits(double value, int after_point) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", after_point, value);
    return text;
  }

  std::string name_;
  std::string text_;
  std::size_t wrong_ = 0;
  std::size_t checked_ = 0;
  bool slow_ = false;
};

/// What a program is told.
struct Settings {
  int rounds = 5;
  double milliseconds = 0;  // of one kernel
  std::size_t megabytes = 64;
  int any_speed = 0;
};

/// What a program is: `measure(settings, line)` does the work.
struct Program {
  const char* name;
  int gpus;  // that it needs
  double milliseconds;
  void (*measure)(const Settings&, Line&);
};

/// The main() of a program. Returns 0 if all is as it should be, 1 if not, and 77 if it was skipped.
inline int run_program(const Program& program, int argc, char** argv) try {
  Settings settings{.milliseconds = program.milliseconds};
  examples::Arguments arguments("Prints one line about " + std::string(program.name) + " on this machine's GPUs.");
  arguments.add("rounds", settings.rounds, {1, 1000}, "rounds, of which the median counts");
  arguments.add("milliseconds", settings.milliseconds, {0.001, 10000}, "how long a kernel takes");
  arguments.add("megabytes", settings.megabytes, {1, 65536}, "MiB of an array");
  arguments.add("any-speed", settings.any_speed, {0, 1}, "1: to be slow is no failure");
  arguments.parse(argc, argv);
  const int gpus = fanout::cuda::device_count();
  if (gpus < program.gpus) {
    std::printf("%s skipped: needs %d %s, found %d%s%s\n", program.name, program.gpus,
                program.gpus == 1 ? "GPU" : "GPUs", gpus, gpus == 0 ? ": " : "",
                gpus == 0 ? fanout::cuda::unavailable_reason().c_str() : "");
    return 77;
  }
  Line line(program.name);
  program.measure(settings, line);
  return line.print(settings.any_speed == 1);
} catch (const std::exception& error) {
  std::string text = error.what();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  std::printf("%s wrong error: %s\n", program.name, text.c_str());
  return 1;
}

/// The median of f() over the rounds, after one round for warming up. f returns a number.
template <class F>
double median_of(int rounds, const F& f) {
  std::vector<double> values;
  f();
  for (int round = 0; round < rounds; ++round) values.push_back(f());
  return quantile(std::move(values), 0.5);
}

/// The medians of ratios of ours to by_hand, in turns. Both return seconds.
template <class Ours, class ByHand>
double median_ratio(int rounds, const Ours& ours, const ByHand& by_hand) {
  ours();
  by_hand();
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const double one = ours();
    ratios.push_back(one / by_hand());
  }
  return quantile(std::move(ratios), 0.5);
}

/// Elements that differ from the wanted number.
template <class Array>
std::size_t others_than(const Array& array, float wanted) {
  const auto here = fanout::to_host(array);
  std::size_t count = 0;
  for (std::size_t i = 0; i < here.size(); ++i) count += here.data()[i] == wanted ? 0U : 1U;
  return count;
}

}  // namespace benchmarks
