// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/rendezvous/rendezvous_state.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <mpi/threads/thread_mail.hpp>
#include <support/timeout_of.hpp>

// Collectives in `forward` that wait for a rank which does not come before the deadline of the call. The late rank
// waits for the others to give up. Deadlines are made longer until all ranks have begun the call in time.

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::Timeout;
using fanout_test::is_true_on_all;
using fanout_test::on_ranks;
using fanout_test::this_rank;
using fanout_test::ThreadGroup;
using fanout_test::ThreadWorld;

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

enum class Late { calls, returns, throws };

/// Sums ones over the ranks. One rank is late.
struct LateAdds {
  ThreadWorld* world;
  Late how;
  bool is_late;
  bool* has_met;

  double forward(fanout::Context auto& ctx, int) const {
    Tensor<double, 1> x = Tensor<double, 1>::full({10}, 1.0);
    if (is_late) {
      world->barrier.arrive_and_wait();
      *has_met = true;
      if (how == Late::throws) throw std::runtime_error("late and wrong");
      if (how == Late::returns) return 0;
    }
    ctx.communicator().all_reduce(x);
    return x(9);
  }
};

/// What the call throws on this rank.
std::string text_of_late_call(std::size_t late, Late how) {
  for (std::chrono::milliseconds deadline{100}; deadline < std::chrono::seconds{20}; deadline *= 2) {
    const ThreadGroup ranks;
    const bool is_late = ranks.rank() == late;
    bool has_met = false;
    std::string text = "nothing thrown";
    fanout_test::meet();
    try {
      const ParallelModel model{LateAdds{this_rank.world, how, is_late, &has_met},
                                fanout::host_devices(1),
                                {.deadline = deadline, .ranks = ranks}};
      const std::optional<Timeout> timeout = fanout_test::timeout_of([&] { model(fanout::on_all(), 0); });
      if (timeout) {
        text = timeout->what();
        CHECK(timeout->late().size() == 0);
        CHECK(std::count(timeout->missing().begin(), timeout->missing().end(), late) == 1);
      }
    } catch (const fanout::Error& error) {
      text = std::string("not late: ") + error.what();
    }
    if (!(is_late && has_met)) fanout_test::meet();
    const bool came = is_late ? has_met : says(text, "had not come to a collective");
    if (is_true_on_all(came)) return text;
  }
  return "never came as far as the collective";
}

}  // namespace

TEST_CASE("collectives that wait for a late thread end at the deadline of the call, and name it on all ranks") {
  for (const std::size_t count : {2U, 3U}) {
    on_ranks(count, [count] {
      for (const Late how : {Late::calls, Late::returns, Late::throws}) {
        for (std::size_t late = 0; late < count; ++late) {
          const std::string text = text_of_late_call(late, how);
          INFO(text);
          const std::string name = "rank " + std::to_string(late);
          if (this_rank.rank != late) {
            CHECK(says(text, name));
            CHECK(says(text, " had not come to a collective at the deadline of "));
            CHECK(says(text, " called all_reduce(sum) of double[10]"));
          } else if (how == Late::throws) {
            CHECK(says(text, "late and wrong"));
          } else {
            CHECK(says(text, name));
            CHECK(!says(text, "not late: "));
          }
        }
      }
    });
  }
}
