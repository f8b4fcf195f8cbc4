// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace benchmarks {

template <class F>
double seconds_of(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The value below which this share of the values lie.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/// What fanout does and what is written by hand, in turns in one process, so that what else goes on falls on both. Each
/// round gives a ratio of the two; printed are the median and, as the spread, the quartiles of these.
class Comparisons {
 public:
  explicit Comparisons(int rounds) : rounds_(rounds) {
    std::printf("%-44s %-6s %11s %11s %7s  %s\n", "", "", "fanout", "by hand", "ratio", "quartiles");
  }

  /// Both return one number, such as a time. The first round of each is for warming up.
  template <class Ours, class ByHand>
  void add(const std::string& name, const char* unit, const Ours& ours, const ByHand& by_hand) {
    Row row{name, unit, {}, {}};
    ours();
    by_hand();
    for (int round = 0; round < rounds_; ++round) {
      if (round % 2 == 0) row.ours.push_back(ours());
      row.by_hand.push_back(by_hand());
      if (round % 2 != 0) row.ours.push_back(ours());
    }
    const std::vector<double> ratios = row.ratios();
    std::printf("%-44s %-6s %11.2f %11.2f %7.3f  %.3f to %.3f\n", name.c_str(), unit, quantile(row.ours, 0.5),
                quantile(row.by_hand, 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75));
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }

  /// All numbers of all rounds. Throws std::runtime_error if the file cannot be written.
  void write_json(const std::string& path, const std::string& machine) const {
    std::ofstream out(path);
    out.precision(9);
    out << "{\"machine\": \"" << machine << "\", \"rows\": [";
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      out << (i == 0 ? "\n" : ",\n") << R"(  {"name": ")" << row.name << R"(", "unit": ")" << row.unit << '"';
      write(out, "fanout", row.ours);
      write(out, "by_hand", row.by_hand);
      write(out, "ratio", row.ratios());
      out << '}';
    }
    out << "\n]}\n" << std::flush;
    if (!out) throw std::runtime_error("cannot write to the file " + path);
  }

 private:
  struct Row {
    std::string name;
    std::string unit;
    std::vector<double> ours;
    std::vector<double> by_hand;

    std::vector<double> ratios() const {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / by_hand[i]);
      return ratios;
    }
  };

  static void write(std::ofstream& out, const char* name, const std::vector<double>& values) {
    out << ", \"" << name << "\": [";
    for (std::size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << values[i];
    out << ']';
  }

  int rounds_;
  std::vector<Row> rows_;
};

}  // namespace benchmarks
