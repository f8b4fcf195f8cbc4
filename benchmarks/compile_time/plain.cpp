// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The squares of examples/readme.cpp by hand. Its compile time is the unit of benchmarks/compile_time/run.
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <thread>
#include <vector>

int main() {
  std::vector<double> x{1.0, 2.0, 3.0, 4.0, 5.0};
  const std::size_t count = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t) {
    threads.emplace_back([&x, t, count] {
      for (std::size_t i = x.size() * t / count; i < x.size() * (t + 1) / count; ++i) x[i] *= x[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double value : x) std::cout << value << ' ';
}
