// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs cases of the programs that write_programs has written:
//     random_programs --cases N              so many, dealt to all programs
//     random_programs --program P --draw D   one of them again
//     random_programs --allocations N        N draws of each program, in which each allocation fails once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "case.hpp"
#include "sweep.hpp"

namespace random_programs {

extern const std::uint64_t first_seed;
extern const std::map<std::size_t, const Program*> programs;

namespace {

struct Totals {
  std::size_t cases = 0;
  std::size_t failed_allocations = 0;
  std::size_t wrong = 0;
};

void run_case(std::size_t number, std::size_t draw, std::size_t devices, bool fails_allocations, Totals& totals) {
  const std::string how = (fails_allocations ? " --failing --devices " + std::to_string(devices) : std::string());
  const std::string which = "--seed " + std::to_string(first_seed) + " --program " + std::to_string(number) +
                            " --draw " + std::to_string(draw) + how;
  const Running running("bash tests/random_programs/run " + which);
  const Program& program = *programs.at(number);
  Case own(Random(first_seed + 1000 * number + 1'000'000'007 * draw)(), program, devices);
  if (fails_allocations) {
    own.fails_allocations = true;
    own.makes_model = draw % 2 == 0;
    own.odd_shard = ~std::size_t{0};
    own.rows = 2 * devices + draw;
    own.sharing.way = Way::even;
  }
  const Spared spared;
  program.run(own);
  ++totals.cases;
  totals.failed_allocations += own.failed_allocations();
  if (own.wrong().empty()) return;
  ++totals.wrong;
  std::printf("\nFAILED: bash tests/random_programs/run %s\n  %zu devices, %zu rows, axis %d, split %d: %s\n",
              which.c_str(), own.devices, own.rows, own.axis, static_cast<int>(own.sharing.way), own.wrong().c_str());
}

int run(int count, char** arguments) {
  std::map<std::string, std::size_t> given;
  for (int i = 1; i < count; ++i) {
    const bool has_value = i + 1 < count && arguments[i + 1][0] != '-';
    given[arguments[i]] = has_value ? std::strtoull(arguments[i + 1], nullptr, 10) : 1;
    i += has_value ? 1 : 0;
  }
  Totals totals;
  if (given.contains("--draw")) {
    run_case(given["--program"], given["--draw"], given["--devices"], given.contains("--failing"), totals);
  } else if (given.contains("--allocations")) {
    for (const auto& [number, program] : programs) {
      for (std::size_t draw = 0; draw < given["--allocations"]; ++draw) {
        for (const int devices : {1, 3, 9, 17}) {
          run_case(number, draw, static_cast<std::size_t>(devices), true, totals);
        }
      }
    }
  } else {
    for (std::size_t i = 0; i < given["--cases"] && totals.wrong < 10; ++i) {
      run_case(std::next(programs.begin(), static_cast<long>(i % programs.size()))->first, i / programs.size(), 0,
               false, totals);
    }
  }
  std::printf("%zu cases of %zu programs from seed %llu, %zu failed allocations: %zu wrong\n", totals.cases,
              programs.size(), static_cast<unsigned long long>(first_seed), totals.failed_allocations, totals.wrong);
  return totals.wrong == 0 && totals.cases != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace random_programs

int main(int count, char** arguments) { return random_programs::run(count, arguments); }
