// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/group/mpi_mail.hpp>

#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/mpi.hpp>
#include <support/message_of.hpp>
#include <support/timeout_of.hpp>

// Calls with a deadline, which a rank does not make in time: what MPI has to do with it. All else is tested in
// tests/mpi/threads. The late rank waits for the others to give up. Ranks that were late once make no more calls, so
// each such call has ranks of its own.

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::Timeout;
using fanout::View;
using fanout::mpi::Ranks;
using fanout_test::message_of;
using fanout_test::timeout_of;
using namespace std::chrono_literals;

/// Counts rows.
struct Counts {
  fanout::Sum<int> seen;

  auto forward(fanout::Context auto& ctx, View<const double, 1> x) {
    seen.value += static_cast<int>(x.size());
    return std::tuple{fanout::psum(static_cast<double>(x.size())), ctx.rows().last};
  }
};

struct Sums {
  auto forward(View<const double, 1> x) const { return fanout::psum(x(0)); }
};

Tensor<double, 1> filled(double value) { return Tensor<double, 1>::full({2}, value); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The call times out on all ranks, since this one is late. On a machine with much else to do, others may be late, too.
template <class F>
std::string check_times_out(std::size_t late, const F& f) {
  const std::optional<Timeout> timeout = timeout_of(f);
  REQUIRE(timeout.has_value());
  CHECK(std::count(timeout->missing().begin(), timeout->missing().end(), late) == 1);
  CHECK(timeout->late().size() == 0);
  return timeout->what();
}

/// Waits until all ranks have called it.
void meet() { MPI_Barrier(MPI_COMM_WORLD); }

/// Ranks of which one was late refuse what all of them must do together.
void check_refuses(const Ranks& ranks) {
  ParallelModel model{Sums{}, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
  const ParallelModel without{Sums{}, fanout::host_devices(1), {.ranks = ranks}};
  const std::string refusal =
      "these ranks make no more calls, since ranks were late in an earlier one at mpi::Ranks; make new mpi::Ranks on "
      "all ranks, and new models with them, or end the program";
  CHECK(message_of<fanout::Error>([&] { model(filled(1)); }) == refusal);
  CHECK(message_of<fanout::Error>([&] { without(filled(1)); }) == refusal);
  CHECK(message_of<fanout::Error>([&] { model.async(filled(1)).get(); }) == refusal);
  CHECK(message_of<fanout::Error>([&] { model.broadcast_from(0); }) == refusal);
  CHECK(message_of<fanout::Error>([&] { static_cast<void>(ranks.gather(1, 0)); }) == refusal);
  CHECK(message_of<fanout::Error>([&] { static_cast<void>(ranks.scatter(filled(1), 0)); }) == refusal);
}

void check_works(const Ranks& ranks) {
  ParallelModel model{Counts{}, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
  CHECK(std::get<0>(model(filled(1))) == 2.0 * static_cast<double>(ranks.size()));
  CHECK(model.model().seen.value == 2 * static_cast<int>(ranks.size()));
}

rusage usage_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage;
}

}  // namespace

// What ranks say of each other at a deadline is in tests/mpi/threads/deadlines.cpp.

TEST_CASE("after a Timeout, new ranks and new models go on") {
  for (int group = 0; group < 3; ++group) {
    const Ranks ranks{MPI_COMM_WORLD};
    if (ranks.size() == 1) return;
    const bool is_late = ranks.rank() == 1;
    ParallelModel hasty{Counts{}, fanout::host_devices(1), {.deadline = 20ms, .ranks = ranks}};
    meet();
    if (is_late) meet();
    check_times_out(1, [&] { hasty(filled(1)); });
    if (!is_late) meet();
    const Ranks next{MPI_COMM_WORLD};
    ParallelModel model{hasty.model(), fanout::host_devices(1), {.deadline = 60s, .ranks = next}};
    CHECK(std::get<0>(model(filled(1))) == 2.0 * static_cast<double>(next.size()));
    CHECK(model.model().seen.value == 2 * static_cast<int>(next.size()));
    check_works(next);
    check_refuses(ranks);
  }
}

TEST_CASE("ranks that wait for a deadline leave their core to others") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const ParallelModel model{Sums{}, fanout::host_devices(1), {.deadline = 300ms, .ranks = ranks}};
  meet();
  if (ranks.rank() == 0) meet();
  const rusage before = usage_of_this_thread();
  check_times_out(0, [&] { model(filled(1)); });
  const rusage after = usage_of_this_thread();
  if (ranks.rank() != 0) CHECK(after.ru_nvcsw - before.ru_nvcsw >= 5);  // sleeps, also if the machine is full
  if (ranks.rank() != 0) meet();
}

TEST_CASE("ranks that gave a call up may go, and others take their place") {
  for (int group = 0; group < 3; ++group) {
    auto ranks = std::make_unique<Ranks>(MPI_COMM_WORLD);
    if (ranks->size() == 1) return;
    const bool is_late = ranks->rank() == 1;
    if (!is_late) {
      const ParallelModel model{Sums{}, fanout::host_devices(1), {.deadline = 10ms, .ranks = *ranks}};
      check_times_out(1, [&] { model(filled(1)); });
      check_refuses(*ranks);
    }
    ranks.reset();  // with messages that rank 1 never receives
    const Ranks next{MPI_COMM_WORLD};
    const ParallelModel sums{Sums{}, fanout::host_devices(1), {.deadline = 60s, .ranks = next}};
    CHECK(sums(filled(1)) == static_cast<double>(next.size()));
  }
}

TEST_CASE("scatter and gather end at the deadline of the ranks on all ranks") {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int late = 0; size > 1 && late < size; ++late) {
    for (const bool gathers : {false, true}) {
      const Ranks hasty{MPI_COMM_WORLD, {.deadline = 20ms}};
      const bool is_late = hasty.rank() == static_cast<std::size_t>(late);
      meet();
      if (is_late) meet();
      const std::string text = check_times_out(static_cast<std::size_t>(late), [&] {
        if (gathers) {
          static_cast<void>(hasty.gather(1, 0));
        } else {
          static_cast<void>(hasty.scatter(filled(1), 0));
        }
      });
      CHECK(has(text, gathers ? "gather with root 0 of " : "scatter with root 0 of "));
      CHECK(has(text, "the deadline of 20 ms"));
      if (!is_late) meet();
    }
  }
  const Ranks patient{MPI_COMM_WORLD, {.deadline = 60s}};
  const std::size_t n = patient.size();
  const auto mine = patient.scatter(Tensor<double, 1>::full({2 * n}, 3.0), 0);
  CHECK(mine.size() == 2);
  const auto all = patient.gather(mine, 0);
  if (all) CHECK(all->size() == 2 * n);
}

TEST_CASE("Ranks with a deadline and Ranks without one are refused together") {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  const std::string text = message_of<fanout::StructureMismatch>([&] {
    fanout::mpi::RanksOptions options;
    if (rank == 1) options.deadline = 60s;
    const Ranks ranks{MPI_COMM_WORLD, options};
  });
  CHECK(has(text, "mpi::Ranks with .reduce = in_rank_order, with a deadline"));
}
