// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// OpenMP's half of what docs/guide/from_openmp.md shows, and a forward that starts a team. fanout's half is in
// from_openmp.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include <omp.h>

#include <fanout/fanout.hpp>

// It would put each pragma into the first column.
// clang-format off

TEST_CASE("in OpenMP: a loop and a sum") {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7};
  std::vector<double> y(x.size());
  const double a = 2;
  // [loop]
  double sum = 0;
  #pragma omp parallel for reduction(+ : sum) num_threads(4) schedule(static)
  for (std::size_t i = 0; i < x.size(); ++i) sum += y[i] = a * x[i];
  // [/loop]
  CHECK(y == std::vector<double>{2, 4, 6, 8, 10, 12, 14});
  CHECK(sum == 56);
}

TEST_CASE("in OpenMP: results under a lock") {
  const std::vector<double> x{1, 9, 2, 8, 3, 7, 4};
  const double limit = 5;
  // [hits]
  std::vector<std::size_t> hits;  // in any order
  #pragma omp parallel for
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] > limit) {
      #pragma omp critical
      hits.push_back(i);
    }
  // [/hits]
  std::sort(hits.begin(), hits.end());
  CHECK(hits == std::vector<std::size_t>{1, 3, 5});
}

TEST_CASE("in OpenMP: a random generator for each thread") {
  const int points = 1000;
  // [random]
  long hits = 0;
  #pragma omp parallel reduction(+ : hits)
  {
    std::minstd_rand random(7 + static_cast<unsigned>(omp_get_thread_num()));
    std::uniform_real_distribution<> uniform;
    #pragma omp for
    for (int i = 0; i < points; ++i) hits += uniform(random) < 0.5 ? 1 : 0;
  }
  // [/random]
  CHECK(hits > 400);
  CHECK(hits < 600);
}

TEST_CASE("in OpenMP: a loop over several devices") {
  const std::vector<float> in{1, 2, 3, 4, 5};
  std::vector<float> out(in.size());
  const float* x = in.data();
  float* y = out.data();
  const int devices = std::max(1, omp_get_num_devices());
  const int n = static_cast<int>(in.size());
  // [target]
  #pragma omp parallel for num_threads(devices)
  for (int d = 0; d < devices; ++d) {
    const int begin = d * n / devices, count = (d + 1) * n / devices - begin;
    #pragma omp target teams distribute parallel for device(d) map(to : x[begin:count]) map(from : y[begin:count])
    for (int i = begin; i < begin + count; ++i) y[i] = x[i] * x[i];
  }
  // [/target]
  CHECK(out == std::vector<float>{1, 4, 9, 16, 25});
}

TEST_CASE("OpenMP inside of fanout: a team for each device") {
  using fanout::Context, fanout::output, fanout::ParallelModel, fanout::View;
  // [teams]
  const ParallelModel model{
      [](Context auto& ctx, View<const double, 1> x) {
        auto y = output<double>(ctx);
        const int cores = static_cast<int>(ctx.device().cores().size());
        #pragma omp parallel for num_threads(cores)
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
        return y;
      },
      fanout::host_devices({.count = 2, .cores_each = 4})};
  // [/teams]
  const auto y = model(fanout::tensor<double>({1, 2, 3, 4, 5}));
  CHECK(std::vector(y.begin(), y.end()) == std::vector<double>{1, 4, 9, 16, 25});
}
