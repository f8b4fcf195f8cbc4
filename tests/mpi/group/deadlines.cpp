// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/group/timed_exchange.hpp>

#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/mpi.hpp>
#include <mpi/support/lost_messages.hpp>
#include <support/message_of.hpp>
#include <support/timeout_of.hpp>

// Calls with a deadline, which a rank does not make in time. What is late does not depend on how fast the machine is:
// the late rank waits for the others to give up, and the deadlines of calls that must be in time are long, or are made
// longer. Ranks that were late once make no more calls, so each such call has ranks of its own.

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::Timeout;
using fanout::View;
using fanout::mpi::Ranks;
using fanout_test::lost_to;
using fanout_test::message_of;
using fanout_test::timeout_of;
using namespace std::chrono_literals;

/// Counts rows. A negative first row is late: it waits for the deadline. If it is less than -1, it then throws.
struct Counts {
  fanout::Sum<int> seen;

  auto forward(fanout::Context auto& ctx, View<const double, 1> x) {
    seen.value += static_cast<int>(x.size());
    if (x.size() != 0 && x(0) < 0) {
      while (!ctx.stop_requested()) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(2ms);
      if (x(0) < -1) throw std::runtime_error("late and wrong");
    }
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

/// Until all ranks are here.
void meet() { MPI_Barrier(MPI_COMM_WORLD); }

/// Calls `f` with new ranks and longer and longer deadlines, until it is true on all ranks: on a machine with much else
/// to do, a rank may be late that should not be.
template <class F>
void check_in_the_end(const F& f) {
  int is_so = 0;
  for (auto deadline = 100ms; is_so == 0 && deadline < 10s; deadline *= 2) {
    const Ranks ranks{MPI_COMM_WORLD};
    try {
      is_so = f(ranks, deadline) ? 1 : 0;
    } catch (const fanout::Error&) {
      is_so = 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, &is_so, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  CHECK(is_so == 1);
}

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

TEST_CASE("a rank that has heard of all gives up a call that another one gives up") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() < 3) return;
  check_works(ranks);
  // Only rank 1 does not hear of rank 2.
  const auto deadline = ranks.rank() == 1 ? 50ms : 5000ms;
  const ParallelModel model{Sums{}, fanout::host_devices(1), {.deadline = deadline, .ranks = ranks}};
  if (ranks.rank() == 2) lost_to = 1;
  meet();
  check_times_out(2, [&] { model(filled(1)); });
  lost_to = MPI_PROC_NULL;
  check_refuses(ranks);
}

TEST_CASE("calls that keep their deadline give what they give without one") {
  const Ranks ranks{MPI_COMM_WORLD};
  ParallelModel model{Counts{}, fanout::host_devices(2), {.deadline = 60s, .ranks = ranks}};
  const std::size_t rank = ranks.rank();
  for (int call = 1; call <= 20; ++call) {
    const auto [rows, last] = model(Tensor<double, 1>(rank + 1));
    const std::size_t n = ranks.size();
    CHECK(rows == static_cast<double>(n * (n + 1) / 2));
    CHECK(last(last.size() - 1) == (rank + 1) * (rank + 2) / 2);
    CHECK(model.model().seen.value == call * static_cast<int>(n * (n + 1) / 2));
  }
}

TEST_CASE("ranks that wait at a deadline name the missing rank, which learns of it, and refuse further calls") {
  for (std::size_t late = 0;; ++late) {
    const Ranks ranks{MPI_COMM_WORLD};
    if (ranks.size() == 1 || late == ranks.size()) return;
    ParallelModel hasty{Counts{}, fanout::host_devices(1), {.deadline = 20ms, .ranks = ranks}};
    check_works(ranks);
    const bool is_late = ranks.rank() == late;
    const std::string name = "rank " + std::to_string(late) + " on ";
    meet();
    if (is_late) meet();
    const auto begin = std::chrono::steady_clock::now();
    const std::string text = check_times_out(late, [&] { hasty(filled(1)); });
    if (!is_late) CHECK(std::chrono::steady_clock::now() - begin >= 10ms);
    CHECK(has(text, "call 0: "));
    CHECK(has(text, "Counts returns"));
    if (is_late) {
      CHECK(has(text, " gave up at the deadline of 20 ms, since "));
      CHECK(has(text, "this rank"));
      CHECK(text.starts_with("rank "));
    } else {
      // With several ranks that wait, one gives up first, and the others with it.
      CHECK(has(text, name));
      CHECK(has(text, "the deadline of 20 ms"));
      CHECK(has(text, "had not arrived"));
      CHECK(has(text, "a rank without Options::deadline counts as missing"));
    }
    CHECK(hasty.model().seen.value == 0);
    check_refuses(ranks);
    if (!is_late) meet();
  }
}

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

TEST_CASE("a rank whose shards are late throws its own Timeout, and the others one that names it") {
  for (const bool first : {true, false}) {
    check_in_the_end([&](const Ranks& ranks, std::chrono::milliseconds deadline) {
      if (ranks.size() == 1) return true;
      const std::size_t late = first ? 0 : ranks.size() - 1;
      const bool is_late = ranks.rank() == late;
      ParallelModel model{
          Counts{}, fanout::host_devices(1), {.deadline = is_late ? deadline : 60'000ms, .ranks = ranks}};
      meet();
      const std::optional<Timeout> timeout = timeout_of([&] { model(filled(is_late ? -1 : 1)); });
      if (!timeout || model.model().seen.value != 0) return false;
      check_refuses(ranks);
      if (is_late)
        return timeout->missing().size() == 0 && timeout->late().size() == 1 && timeout->late()[0].shard == late;
      return timeout->missing().size() == 1 && timeout->missing()[0] == late && timeout->late().size() == 0 &&
             has(timeout->what(), "ranks were late in a call of all ranks:\n  rank " + std::to_string(late) + " on ") &&
             has(timeout->what(), "1 of 1 shard took longer than the deadline of " + Timeout::to_text(deadline));
    });
  }
}

TEST_CASE("all ranks time out if one of them is late for the others' deadline") {
  check_in_the_end([&](const Ranks& ranks, std::chrono::milliseconds deadline) {
    if (ranks.size() == 1) return true;
    const std::size_t late = ranks.size() - 1;
    const bool is_late = ranks.rank() == late;
    ParallelModel model{
        Counts{}, fanout::host_devices(1), {.deadline = is_late ? 3 * deadline : deadline, .ranks = ranks}};
    meet();
    const std::optional<Timeout> timeout = timeout_of([&] { model(filled(is_late ? -1 : 1)); });
    if (!timeout || model.model().seen.value != 0) return false;
    check_refuses(ranks);
    if (is_late) return timeout->late().size() == 1;
    return timeout->missing().size() == 1 && timeout->missing()[0] == late && has(timeout->what(), "had not arrived") &&
           has(timeout->what(), "rank " + std::to_string(late) + " on ");
  });
}

TEST_CASE("a forward that throws after the deadline is an error of forward on all ranks") {
  check_in_the_end([&](const Ranks& ranks, std::chrono::milliseconds deadline) {
    if (ranks.size() == 1) return true;
    const bool is_late = ranks.rank() == 1;
    ParallelModel model{Counts{}, fanout::host_devices(1), {.deadline = is_late ? deadline : 60'000ms, .ranks = ranks}};
    meet();
    try {
      model(filled(is_late ? -2 : 1));
    } catch (const fanout::ReplicaError& error) {
      return has(error.what(), "late and wrong") && (is_late || has(error.what(), "of rank 1 on "));
    }
    return false;
  });
}

TEST_CASE("a forward that throws is an error of forward on all ranks, also if another rank is late") {
  const auto throws = [](View<const double, 1> x) {
    if (x(0) < 0) throw std::runtime_error("wrong in time" + std::string(3000, '.'));  // longer than what is sent
    if (x(0) > 1) meet();                                                              // when the others have given up
    return fanout::psum(x(0));
  };
  check_in_the_end([&](const Ranks& ranks, std::chrono::milliseconds deadline) {
    if (ranks.size() < 3) return true;
    const bool is_late = ranks.rank() + 1 == ranks.size();
    const std::chrono::milliseconds own = ranks.rank() == 0 ? deadline : 60'000ms;
    const ParallelModel model{throws, fanout::host_devices(1), {.deadline = own, .ranks = ranks}};
    meet();
    std::string text;
    try {
      model(filled(is_late ? 2 : ranks.rank() == 1 ? -1 : 1));
    } catch (const fanout::Error& error) {
      text = error.what();
    }
    if (!is_late) meet();
    return has(text, "failed on 1 of ") && has(text, "wrong in time") &&
           (ranks.rank() == 1 || has(text, "of rank 1 on "));
  });
}

TEST_CASE("with a deadline, calls that do not fit are named on all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  ParallelModel counts{Counts{}, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
  const ParallelModel sums{Sums{}, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
  const std::string text = message_of<fanout::StructureMismatch>([&] {
    if (ranks.rank() == 0) {
      counts(filled(1));
    } else {
      sums(filled(1));
    }
  });
  CHECK(has(text, "rank 0 on "));
  CHECK(has(text, "Counts returns"));
  CHECK(has(text, "Sums returns"));
  const auto two = [](View<const double, 1> x, View<const double, 1>) { return fanout::psum(x(0)); };
  const ParallelModel uneven{two, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
  const std::string unfit = message_of<fanout::Error>(
      [&] { uneven(filled(1), Tensor<double, 1>(ranks.rank() == 1 ? std::size_t{3} : std::size_t{2})); });
  CHECK(has(unfit, "rank 1 on ") == (ranks.rank() != 1));
  CHECK(uneven(filled(1), filled(1)) == static_cast<double>(ranks.size()));
}

TEST_CASE("the result of an asynchronous call may be taken after its deadline") {
  check_in_the_end([&](const Ranks& ranks, std::chrono::milliseconds deadline) {
    const ParallelModel model{Sums{}, fanout::host_devices(1), {.deadline = deadline, .ranks = ranks}};
    auto pending = model.async(filled(3));
    std::this_thread::sleep_for(deadline + 10ms);
    meet();
    return pending.get() == 3.0 * static_cast<double>(ranks.size());
  });
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

TEST_CASE("broadcast_from ends at the deadline of the model on all ranks, and changes nothing") {
  for (std::size_t late = 0;; ++late) {
    const Ranks ranks{MPI_COMM_WORLD};
    if (ranks.size() == 1 || late == ranks.size()) return;
    const bool is_late = ranks.rank() == late;
    const int own = static_cast<int>(ranks.rank() + 1);
    ParallelModel hasty{Counts{{own}}, fanout::host_devices(1), {.deadline = 20ms, .ranks = ranks}};
    ParallelModel patient{Counts{{own}}, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
    patient.broadcast_from(1);
    CHECK(patient.model().seen.value == 2);
    meet();
    if (is_late) meet();
    const std::string text = check_times_out(late, [&] { hasty.broadcast_from(0); });
    CHECK(has(text, "broadcast_from(0) of "));
    CHECK(has(text, is_late ? "this rank had not arrived" : "rank " + std::to_string(late)));
    if (!is_late) meet();
    CHECK(hasty.model().seen.value == own);
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
