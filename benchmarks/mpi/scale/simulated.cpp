// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// simulated BYTES [fold]: prints the simulated time of a call that reduces so many bytes of floats over all ranks
// beside that of MPI_Allreduce. 0 bytes: of a call that only agrees, beside MPI_Allreduce of 64 bytes. With `fold`,
// large messages are not copied, and sums are not checked.

#include "one_process.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <fanout/mpi.hpp>

extern "C" int smpi_nanosleep(const timespec* time, timespec* left);

namespace {

struct Agrees {
  auto forward(fanout::Context auto& ctx) const { return ctx.rank(); }
};

struct Reduces {
  std::size_t numbers;

  auto forward(fanout::View<const float, 1> x) const {
    auto values = fanout::Tensor<float, 1>::uninitialized({numbers});
    std::fill(values.begin(), values.end(), x(0));
    return fanout::psum(std::move(values));
  }
};

/// The two steps of such a call, for elements that are given: the call itself would write as many on each rank.
void make_steps(const fanout::backend::ProcessRanks& ranks, float* elements, std::size_t count) {
  using fanout::detail::Elements;
  using Fold = fanout::detail::FoldOverRanks<fanout::rules::Sum, float>;
  const auto visit = [&](const auto& f) {
    f(fanout::detail::rank_fold<Fold, true, float>, Elements<float>{.data = elements, .count = count},
      fanout::detail::output_root);
  };
  const std::string name = "steps";
  fanout::backend::RankedStep step{.name = &name, .rows = 1, .shards = 1};
  ranks.begin(step, nullptr);
  step.visit = &fanout::detail::show_values<decltype(visit)>;
  step.of = &visit;
  ranks.combine(step);
}

/// The simulated time until `f()` has ended on all ranks, in seconds. All ranks begin at the same time.
template <class F>
double time_of(const F& f) {
  const double now = MPI_Wtime();
  double begin = 0;
  MPI_Allreduce(&now, &begin, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  begin += 0.01;
  const timespec wait{.tv_sec = 0, .tv_nsec = static_cast<long>((begin - MPI_Wtime()) * 1e9)};
  smpi_nanosleep(&wait, nullptr);
  f();
  const double end = MPI_Wtime();
  double last = 0;
  MPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return last - begin;
}

void measure(std::size_t bytes, bool folded) {
  const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
  const auto devices = fanout::host_devices({.count = 1});
  if (folded && ranks.rank() == 0) scale::fold_messages();

  // All ranks share one block if nothing is copied. They are in one process, so the address of rank 0 is good for all.
  const std::size_t room = bytes == 0 ? 64 : bytes;
  void* memory = folded && ranks.rank() != 0 ? nullptr : std::calloc(room, 2);
  if (folded) MPI_Bcast(&memory, sizeof(memory), MPI_BYTE, 0, MPI_COMM_WORLD);
  auto* const from = static_cast<float*>(memory);
  float* const to = from + room / sizeof(float);

  double ours = 0;
  const std::size_t numbers = bytes / sizeof(float);
  if (bytes == 0) {
    const fanout::ParallelModel model{Agrees(), devices, {.ranks = ranks}};
    ours = time_of([&] { model(); });
  } else if (folded) {
    ours = time_of([&] { make_steps(*static_cast<const fanout::backend::ProcessRanks*>(ranks), to, numbers); });
  } else {
    const fanout::ParallelModel model{Reduces{numbers}, devices, {.ranks = ranks}};
    fanout::Tensor<float, 1> x(1);
    x(0) = static_cast<float>(ranks.rank());
    fanout::Tensor<float, 1> sums;
    ours = time_of([&] { sums = model(x); });
    const auto expected = static_cast<float>(ranks.size() * (ranks.size() - 1) / 2);
    if (std::count(sums.begin(), sums.end(), expected) != static_cast<std::ptrdiff_t>(numbers)) {
      std::puts("wrong sums");
      std::abort();
    }
  }
  MPI_Op sum = MPI_SUM;
  // Computing takes no simulated time in either case.
  if (folded) MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &sum);
  const double theirs =
      time_of([&] { MPI_Allreduce(from, to, static_cast<int>(room / sizeof(float)), MPI_FLOAT, sum, MPI_COMM_WORLD); });
  if (ranks.rank() == 0) {
    std::printf("%zu %zu %.9f %.9f\n", ranks.size(), bytes, ours, theirs);
    std::fflush(stdout);  // SMPI takes long to end
  }
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  measure(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0, argc > 2 && std::string_view(argv[2]) == "fold");
  MPI_Finalize();
}
