// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/group/timed_exchange.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/device/host_device.hpp>
#include <fanout/parallel/broadcast_from.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <mpi/threads/thread_mail.hpp>
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
using fanout_test::is_true_on_all;
using fanout_test::meet;
using fanout_test::message_of;
using fanout_test::on_ranks;
using fanout_test::timeout_of;
using Ranks = fanout_test::ThreadGroup;
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
  CHECK(timeout.has_value());
  if (!timeout) return {};
  CHECK(std::count(timeout->missing().begin(), timeout->missing().end(), late) == 1);
  CHECK(timeout->late().size() == 0);
  return timeout->what();
}

/// Calls `f` with new ranks and longer and longer deadlines, until it is true on all ranks: on a machine with much else
/// to do, a rank may be late that should not be.
template <class F>
void check_in_the_end(const F& f) {
  bool is_so = false;
  for (auto deadline = 100ms; !is_so && deadline < 10s; deadline *= 2) {
    const Ranks ranks;
    try {
      is_so = f(ranks, deadline);
    } catch (const fanout::Error&) {
      is_so = false;
    }
    is_so = is_true_on_all(is_so);
  }
  CHECK(is_so);
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
}

void check_works(const Ranks& ranks) {
  ParallelModel model{Counts{}, fanout::host_devices(1), {.deadline = 60s, .ranks = ranks}};
  CHECK(std::get<0>(model(filled(1))) == 2.0 * static_cast<double>(ranks.size()));
  CHECK(model.model().seen.value == 2 * static_cast<int>(ranks.size()));
}

}  // namespace

TEST_CASE("a rank that has heard of all gives up a call that another one gives up") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      const Ranks ranks;
      if (ranks.size() < 3) return;
      check_works(ranks);
      // Only rank 1 does not hear of rank 2.
      const auto deadline = ranks.rank() == 1 ? 50ms : 5000ms;
      const ParallelModel model{Sums{}, fanout::host_devices(1), {.deadline = deadline, .ranks = ranks}};
      if (ranks.rank() == 2) ranks.mail.lost_to = 1;
      meet();
      check_times_out(2, [&] { model(filled(1)); });
      ranks.mail.lost_to = fanout_test::ThreadMail::nobody;
      check_refuses(ranks);
    });
  }
}

TEST_CASE("calls that keep their deadline give what they give without one") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      const Ranks ranks;
      ParallelModel model{Counts{}, fanout::host_devices(2), {.deadline = 60s, .ranks = ranks}};
      const std::size_t rank = ranks.rank();
      for (int call = 1; call <= 20; ++call) {
        const auto [rows, last] = model(Tensor<double, 1>(rank + 1));
        const std::size_t n = ranks.size();
        CHECK(rows == static_cast<double>(n * (n + 1) / 2));
        CHECK(last(last.size() - 1) == (rank + 1) * (rank + 2) / 2);
        CHECK(model.model().seen.value == call * static_cast<int>(n * (n + 1) / 2));
      }
    });
  }
}

TEST_CASE("ranks that wait at a deadline name the missing rank, which learns of it, and refuse further calls") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      for (std::size_t late = 0;; ++late) {
        const Ranks ranks;
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
    });
  }
}

TEST_CASE("after a Timeout, new ranks and new models go on") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      for (int group = 0; group < 3; ++group) {
        const Ranks ranks;
        if (ranks.size() == 1) return;
        const bool is_late = ranks.rank() == 1;
        ParallelModel hasty{Counts{}, fanout::host_devices(1), {.deadline = 20ms, .ranks = ranks}};
        meet();
        if (is_late) meet();
        check_times_out(1, [&] { hasty(filled(1)); });
        if (!is_late) meet();
        const Ranks next;
        ParallelModel model{hasty.model(), fanout::host_devices(1), {.deadline = 60s, .ranks = next}};
        CHECK(std::get<0>(model(filled(1))) == 2.0 * static_cast<double>(next.size()));
        CHECK(model.model().seen.value == 2 * static_cast<int>(next.size()));
        check_works(next);
        check_refuses(ranks);
      }
    });
  }
}

TEST_CASE("a rank whose shards are late throws its own Timeout, and the others one that names it") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
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
                 has(timeout->what(),
                     "ranks were late in a call of all ranks:\n  rank " + std::to_string(late) + " on ") &&
                 has(timeout->what(), "1 of 1 shard took longer than the deadline of " + Timeout::to_text(deadline));
        });
      }
    });
  }
}

TEST_CASE("all ranks time out if one of them is late for the others' deadline") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
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
        return timeout->missing().size() == 1 && timeout->missing()[0] == late &&
               has(timeout->what(), "had not arrived") && has(timeout->what(), "rank " + std::to_string(late) + " on ");
      });
    });
  }
}

TEST_CASE("a forward that throws after the deadline is an error of forward on all ranks") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      check_in_the_end([&](const Ranks& ranks, std::chrono::milliseconds deadline) {
        if (ranks.size() == 1) return true;
        const bool is_late = ranks.rank() == 1;
        ParallelModel model{
            Counts{}, fanout::host_devices(1), {.deadline = is_late ? deadline : 60'000ms, .ranks = ranks}};
        meet();
        try {
          model(filled(is_late ? -2 : 1));
        } catch (const fanout::ReplicaError& error) {
          return has(error.what(), "late and wrong") && (is_late || has(error.what(), "of rank 1 on "));
        }
        return false;
      });
    });
  }
}

TEST_CASE("a forward that throws is an error of forward on all ranks, also if another rank is late") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      const auto throws = [world = fanout_test::this_rank.world](View<const double, 1> x) {
        if (x(0) < 0) throw std::runtime_error("wrong in time" + std::string(3000, '.'));  // longer than what is sent
        if (x(0) > 1) world->barrier.arrive_and_wait();  // when the others have given up
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
    });
  }
}

TEST_CASE("with a deadline, calls that do not fit are named on all ranks") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      const Ranks ranks;
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
    });
  }
}

TEST_CASE("the result of an asynchronous call may be taken after its deadline") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      check_in_the_end([&](const Ranks& ranks, std::chrono::milliseconds deadline) {
        const ParallelModel model{Sums{}, fanout::host_devices(1), {.deadline = deadline, .ranks = ranks}};
        auto pending = model.async(filled(3));
        std::this_thread::sleep_for(deadline + 10ms);
        meet();
        return pending.get() == 3.0 * static_cast<double>(ranks.size());
      });
    });
  }
}

TEST_CASE("broadcast_from ends at the deadline of the model on all ranks, and changes nothing") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    on_ranks(count, [] {
      for (std::size_t late = 0;; ++late) {
        const Ranks ranks;
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
    });
  }
}
