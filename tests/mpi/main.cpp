// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One program, started with 1, 2, 3, 4 or 8 ranks. Each rank runs all cases; it fails if one rank fails.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include <fanout/mpi/ranks.hpp>

#include "mpi/support/lost_messages.hpp"

namespace {

/// The text of the error. Used outside of test cases, so it checks nothing.
template <class F>
std::string text_of(const F& f) {
  try {
    f();
  } catch (const fanout::Error& error) {
    return error.what();
  }
  return "no error";
}
const auto make_ranks = [] { const fanout::mpi::Ranks ranks{MPI_COMM_WORLD}; };

}  // namespace

// These stand before the MPI's own functions.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm over,
                         MPI_Request* request) {
  return PMPI_Isend(data, count, type, to == fanout_test::lost_to ? MPI_PROC_NULL : to, tag, over, request);
}

extern "C" int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm over,
                         MPI_Request* request) {
  const bool is_array = count > 4096 || type != MPI_BYTE;
  if (is_array && fanout_test::receives_late) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return PMPI_Irecv(data, count, type, from, tag, over, request);
}

int main(int argc, char** argv) {
  const std::string early = text_of(make_ranks);
  // The thread level that is asked for: by default SERIALIZED.
  const char* const setting = std::getenv("FANOUT_TEST_THREAD_LEVEL");
  const std::string_view wanted = setting == nullptr ? "serialized" : setting;
  int level = 0;
  MPI_Init_thread(&argc, &argv,
                  wanted == "single"     ? MPI_THREAD_SINGLE
                  : wanted == "funneled" ? MPI_THREAD_FUNNELED
                                         : MPI_THREAD_SERIALIZED,
                  &level);
  if (level == MPI_THREAD_SINGLE) {
    const std::string text = text_of(make_ranks);
    MPI_Finalize();
    std::puts(text.c_str());
    return text.find("MPI was initialised for a program with one thread") == std::string::npos;
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int failed = doctest::Context(argc, argv).run();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0 && failed == 0) std::printf("passed on %d ranks\n", ranks);
  // Ends after MPI does: says nothing.
  const auto* const late = new fanout::mpi::Ranks{MPI_COMM_WORLD};
  MPI_Finalize();
  delete late;
  if (early.find("MPI is not initialised at mpi::Ranks") == std::string::npos) failed = 1;
  if (text_of(make_ranks).find("MPI has been finalised at mpi::Ranks") == std::string::npos) failed = 1;
  return failed;
}
