// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No contender, but the floor: one thread calls both bodies.

#include <dispatch/cases.hpp>

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment();
  return benchmarks::run_dispatch(slice, [](const benchmarks::Bodies& bodies) {
    bodies(0);
    bodies(1);
  });
}
