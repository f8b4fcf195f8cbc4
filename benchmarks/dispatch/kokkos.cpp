// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kokkos on its OpenMP backend: parallel_for over two numbers, and a fence.

#include <Kokkos_Core.hpp>

#include <dispatch/cases.hpp>
#include <dispatch/openmp.hpp>

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::openmp_environment(slice));
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return benchmarks::run_dispatch(slice, [](const benchmarks::Bodies& bodies) {
    Kokkos::parallel_for(Kokkos::RangePolicy<Kokkos::OpenMP>(0, 2),
                         [&bodies](int i) { bodies(static_cast<std::size_t>(i)); });
    Kokkos::fence();
  });
}
