// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <harness/load.hpp>
#include <harness/samples.hpp>

namespace benchmarks {

/// A function that all ranks call together.
struct Contender {
  std::string name;
  std::function<void()> call;
};

/// Contenders that take turns on all ranks. Rank 0 has the results: in each round, the seconds of one call of each. The
/// seconds of a rank are those of the slowest one.
class Turns {
 public:
  /// Runs the contenders in turns, for about `seconds` each in a round. All ranks do this together, with the same
  /// contenders.
  Turns(const std::vector<Contender>& contenders, std::size_t rounds, double seconds) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<long> calls;
    for (const Contender& each : contenders) {
      time_of(each, 3);  // memory of results, and what an MPI sets up for the first message
      const double once = time_of(each, 3);
      calls.push_back(std::max(1L, std::lround(seconds / once)));
    }
    for (std::size_t round = 0; round < rounds; ++round) {
      const Load load;
      std::vector<double> times(contenders.size());
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        const std::size_t next = round % 2 == 0 ? i : contenders.size() - 1 - i;
        times[next] = time_of(contenders[next], calls[next]);
      }
      times_.push_back(std::move(times));
      quiet_.push_back(foreign_share(load) < 0.05);
    }
    is_root_ = rank == 0;
  }

  /// Prints the median and the quartiles of a value of a round: `value(seconds)`. Only quiet rounds count if most
  /// rounds are quiet. Otherwise all count, and the line ends with `!`.
  template <class Value>
  void print(const std::string& what, const Value& value, const char* unit, const std::string& target = "") const {
    if (!is_root_) return;
    const auto quiet = static_cast<std::size_t>(std::count(quiet_.begin(), quiet_.end(), true));
    const bool only_quiet = 2 * quiet > times_.size();
    std::vector<double> values;
    for (std::size_t round = 0; round < times_.size(); ++round) {
      if (!only_quiet || quiet_[round]) values.push_back(value(times_[round]));
    }
    std::sort(values.begin(), values.end());
    std::printf("%-66s %10.3f %-5s %10.3f to %.3f%s%s%s\n", what.c_str(), quantile(values, 0.5), unit,
                quantile(values, 0.25), quantile(values, 0.75), only_quiet ? "" : " !",
                target.empty() ? "" : "   target: ", target.c_str());
    std::fflush(stdout);
  }

 private:
  static double time_of(const Contender& contender, long calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (long i = 0; i < calls; ++i) contender.call();
    double seconds = (MPI_Wtime() - begin) / static_cast<double>(calls);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
  }

  /// The share of one core that processes other than the ranks used. All ranks are on this machine.
  static double foreign_share(const Load& load) {
    const double others_and_ranks = load.foreign_share();
    double of_ranks = load.cpu_seconds();
    const double own = of_ranks;
    MPI_Allreduce(MPI_IN_PLACE, &of_ranks, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double share = others_and_ranks - (of_ranks - own) / load.wall_seconds();
    MPI_Bcast(&share, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return share;
  }

  std::vector<std::vector<double>> times_;
  std::vector<bool> quiet_;
  bool is_root_ = false;
};

}  // namespace benchmarks
