// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models whose forward starts a team of OpenMP threads. A program of its own, since only it is built with OpenMP.
#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <omp.h>

#include <fanout/device/host_device.hpp>
#include <fanout/parallel/parallel_model.hpp>

namespace {

struct Squares {
  int threads;
  std::vector<long> forward(std::span<const long> rows) const {
    std::vector<long> squares(rows.size());
    const auto n = static_cast<std::ptrdiff_t>(rows.size());
#pragma omp parallel for num_threads(threads)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      squares[at] = rows[at] * rows[at];
    }
    return squares;
  }
};

}  // namespace

TEST_CASE("a forward that starts a team of OpenMP threads gives right results on any number of devices") {
  std::vector<long> rows(1001);
  std::vector<long> expected(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<long>(i) - 500;
    expected[i] = rows[i] * rows[i];
  }
  for (const int devices : {1, 2, 5}) {
    for (const int threads : {1, 2, 4}) {
      CAPTURE(devices);
      CAPTURE(threads);
      const fanout::ParallelModel model{Squares{threads}, fanout::host_devices(devices)};
      for (int i = 0; i < 5; ++i) CHECK(model(rows) == expected);
    }
  }
}

TEST_CASE("a model can be called from inside a team of OpenMP threads") {
  const fanout::ParallelModel model{Squares{2}, fanout::host_devices(2)};
  const std::vector<long> rows = {1, 2, 3, 4, 5};
  int wrong = 0;
#pragma omp parallel for num_threads(3) reduction(+ : wrong)
  for (int i = 0; i < 60; ++i) wrong += model(rows) == std::vector<long>{1, 4, 9, 16, 25} ? 0 : 1;
  CHECK(wrong == 0);
}
