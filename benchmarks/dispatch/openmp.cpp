// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An OpenMP team of two, bound to two cores: contenders default, active and passive, which are what OMP_WAIT_POLICY
// says.

#include <omp.h>

#include <dispatch/cases.hpp>
#include <dispatch/openmp.hpp>

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::openmp_environment(slice));
  return benchmarks::run_dispatch(slice, [](const benchmarks::Bodies& bodies) {
#pragma omp parallel num_threads(2)
    bodies(static_cast<std::size_t>(omp_get_thread_num()));
  });
}
