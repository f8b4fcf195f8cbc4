// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thrust on its OpenMP backend: for_each_n over two numbers.

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/omp/execution_policy.h>

#include <dispatch/cases.hpp>
#include <dispatch/openmp.hpp>

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::openmp_environment(slice));
  return benchmarks::run_dispatch(slice, [](const benchmarks::Bodies& bodies) {
    thrust::for_each_n(thrust::omp::par, thrust::counting_iterator<std::size_t>(0), 2,
                       [&bodies](std::size_t i) { bodies(i); });
  });
}
