// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All programs in one, for the stand-in: the first argument is the name of one.

#include <cstdio>
#include <string_view>

#include "benchmarks/cuda/programs/behind.hpp"
#include "benchmarks/cuda/programs/entered.hpp"
#include "benchmarks/cuda/programs/gather_home.hpp"
#include "benchmarks/cuda/programs/lanes.hpp"
#include "benchmarks/cuda/programs/overlap_temporaries.hpp"
#if defined(FANOUT_BENCHMARK_NCCL)
#include "benchmarks/cuda/programs/nccl_fault.hpp"
#include "benchmarks/cuda/programs/nccl_first.hpp"
#include "benchmarks/cuda/programs/nccl_sums.hpp"
#endif

int main(int argc, char** argv) {
  using namespace benchmarks;
  for (const Program& program : {
         entered::program, behind::program, lanes::program, overlap_temporaries::program, gather_home::program,
#if defined(FANOUT_BENCHMARK_NCCL)
             nccl_first::program, nccl_sums::program, nccl_fault::program,
#endif
       }) {
    if (argc > 1 && std::string_view(argv[1]) == program.name) return run_program(program, argc - 1, argv + 1);
  }
  std::fprintf(stderr, "usage: all NAME [--flag value] ...\n");
  return 2;
}
