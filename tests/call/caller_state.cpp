// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <fanout/call/caller_state.hpp>
#include <fanout/fanout.hpp>

namespace {

thread_local int mode = 0;

/// The caller's mode, on whatever thread it is entered.
class Mode {
 public:
  class Entered {
   public:
    explicit Entered(int entered) : before_(mode) { mode = entered; }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() { mode = before_; }

   private:
    int before_;
  };
  Entered enter() const { return Entered(found_); }

 private:
  int found_ = mode;
};

/// Tells its thread's mode, and changes it.
struct TellsMode {
  static Mode caller_state() { return {}; }

  int forward(std::span<const int>) const {
    const int found = mode;
    mode = 100;
    if (found == 7) throw std::runtime_error("seven");
    return found;
  }
};
static_assert(fanout::TakesCallerState<TellsMode> && !fanout::TakesCallerState<Mode>);

template <class Tensor>
std::vector<int> values(const Tensor& tensor) {
  return {tensor.begin(), tensor.end()};
}

}  // namespace

TEST_CASE("every shard runs with its caller's thread state and restores its own thread's state") {
  const fanout::ParallelModel model{TellsMode{}, fanout::host_devices(3)};
  const std::vector x{1, 2, 3};
  for (const int now : {1, 2}) {
    mode = now;
    CHECK(values(model(x)) == std::vector{now, now, now});
    CHECK(mode == now);
  }
  mode = 7;
  CHECK_THROWS_AS(model(x), fanout::ReplicaError);
  CHECK(mode == 7);
  mode = 0;
  CHECK(values(model(x)) == std::vector{0, 0, 0});
}

TEST_CASE("caller state reaches different models, per_replica models and models of a factory") {
  mode = 3;
  const auto devices = fanout::host_devices(2);
  const std::vector x{1, 2};
  const auto inputs = fanout::scatter(devices, x);
  const auto plain = [](std::span<const int>) { return -1; };
  CHECK(values(fanout::gather(fanout::apply(std::tuple{plain, TellsMode{}}, devices, inputs))) == std::vector{-1, 3});
  CHECK(values(fanout::gather(fanout::apply(std::vector(2, TellsMode{}), devices, inputs))) == std::vector{3, 3});
  const fanout::ParallelModel copies{fanout::per_replica(TellsMode{}), devices};
  CHECK(values(copies(x)) == std::vector{3, 3});
  const fanout::ParallelModel made{fanout::factory([](const auto&) { return TellsMode{}; }), devices};
  CHECK(values(made(x)) == std::vector{3, 3});
  mode = 0;
}

TEST_CASE("an asynchronous call runs with the caller state of its start, whichever thread waits for it") {
  const fanout::ParallelModel model{TellsMode{}, fanout::host_devices(3)};
  const std::vector x{1, 2, 3};
  mode = 5;
  auto pending = model.async(x);
  mode = 6;
  CHECK(values(pending.get()) == std::vector{5, 5, 5});
  CHECK(mode == 6);
  mode = 0;
}
