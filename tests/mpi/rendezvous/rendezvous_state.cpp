// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/rendezvous/rendezvous_state.hpp>

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/mpi.hpp>
#include <mpi/support/late_call.hpp>
#include <mpi/support/lost_messages.hpp>
#include <support/timeout_of.hpp>

// Collectives in `forward` that wait for a rank which does not come before the deadline of the call.

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::Timeout;
using fanout::View;
using fanout::mpi::Ranks;
using fanout_test::has;
using fanout_test::Late;
using fanout_test::meet;
using fanout_test::text_of_late_call;
using fanout_test::timeout_of;
using fanout_test::Together;
using namespace std::chrono_literals;

/// Sums ones over the ranks. One rank is late.
struct Adds {
  Together all;
  std::size_t size = 10;

  double forward(fanout::Context auto& ctx, std::size_t process) const {
    Tensor<double, 1> x = Tensor<double, 1>::full({size}, 1.0);
    if (process == all.late) {
      if (all.how == Late::loses_messages) return with_lost_messages(ctx, x);
      meet();
      *all.has_met = true;
      if (all.how == Late::throws) throw std::runtime_error("late and wrong");
      if (all.how == Late::returns) return 0;
    }
    ctx.communicator().all_reduce(x);
    return x(size - 1);
  }

 private:
  static double with_lost_messages(fanout::Context auto& ctx, Tensor<double, 1>& x) {
    struct Guard {
      Guard() { fanout_test::lost_to = 1; }
      Guard(const Guard&) = delete;
      Guard& operator=(const Guard&) = delete;
      ~Guard() { fanout_test::lost_to = MPI_PROC_NULL; }
    } const guard;
    ctx.communicator().all_reduce(x);
    return 0;
  }
};

struct Sums {
  double forward(fanout::Context auto& ctx, int) const {
    double x = 1;
    ctx.communicator().all_reduce(x);
    return x;
  }
};

void check_works(const Ranks& ranks) {
  const ParallelModel with{Sums{}, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
  const ParallelModel without{Sums{}, fanout::host_devices(1), {.ranks = ranks}};
  for (int call = 0; call < 2; ++call) {
    for (const double sum : with(fanout::on_all(), 1)) CHECK(sum == static_cast<double>(ranks.size()));
    for (const double sum : without(fanout::on_all(), 1)) CHECK(sum == static_cast<double>(ranks.size()));
  }
}

}  // namespace

TEST_CASE("collectives that wait for a late rank end at the deadline of the call, and name it on all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  for (const Late how : {Late::calls, Late::returns, Late::throws}) {
    for (std::size_t late = 0; late < ranks.size(); ++late) {
      bool has_met = false;
      const Together all{late, how, &has_met};
      const std::string text = text_of_late_call(all, [&](const Ranks& own, std::chrono::milliseconds deadline) {
        const ParallelModel model{Adds{all}, fanout::host_devices(1), {.deadline = deadline, .ranks = own}};
        model(fanout::on_all(), own.rank());
      });
      INFO(text);
      const std::string name = "rank " + std::to_string(late);
      if (ranks.rank() != late) {
        CHECK(has(text, name));
        CHECK(has(text, " had not come to a collective at the deadline of "));
        CHECK(has(text, " called all_reduce(sum) of double[10]"));
      } else if (how == Late::throws) {
        CHECK(has(text, "late and wrong"));
      } else {
        CHECK(has(text, name));
        CHECK(!has(text, "not late: "));
      }
      check_works(Ranks(MPI_COMM_WORLD));
    }
  }
}

TEST_CASE("ranks that have all notes end with one that gave up for want of them") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() < 3) return;
  for (const std::size_t size : {10U, 1'000'000U}) {  // one message, and several
    bool has_met = false;
    const Together all{2, Late::loses_messages, &has_met};
    const std::string text = text_of_late_call(all, [&](const Ranks& own, std::chrono::milliseconds deadline) {
      const ParallelModel model{
          Adds{all, size}, fanout::host_devices(1), {.deadline = own.rank() == 1 ? deadline : 60'000ms, .ranks = own}};
      model(fanout::on_all(), own.rank());
    });
    INFO(text);
    CHECK(has(text, "rank 2"));
    CHECK(has(text, " had not come to a collective at the deadline of "));
    check_works(Ranks(MPI_COMM_WORLD));
  }
}

TEST_CASE("the shards of a late rank are waited for until the deadline only, also without collectives") {
  bool has_met = false;
  for (auto deadline = 100ms; !has_met; deadline *= 2) {
    const Ranks ranks{MPI_COMM_WORLD};
    if (ranks.size() == 1) return;
    const std::size_t late = ranks.size() - 1;
    const bool is_late = ranks.rank() == late;
    const auto waits = [&](fanout::Context auto& ctx, int communicates) {
      if (communicates != 0) ctx.communicator().barrier();  // may meet others, but does not
      if (is_late) meet();
      has_met = true;
    };
    const ParallelModel model{waits, fanout::host_devices(1), {.deadline = deadline, .ranks = ranks}};
    const std::optional<Timeout> timeout = timeout_of([&] { model(fanout::on_all(), 0); });
    CHECK(timeout.has_value());
    if (!is_late && timeout) {
      CHECK(std::count(timeout->missing().begin(), timeout->missing().end(), late) == 1);
    }
    if (!(is_late && has_met)) meet();
    int all_met = has_met ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &all_met, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    has_met = all_met != 0;
  }
  check_works(Ranks(MPI_COMM_WORLD));
}
