// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shards run under the floating-point modes of their caller, on whichever thread, and leave no mode behind.
#include <doctest/doctest.h>

#include <cfenv>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/context/context.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/model/factory.hpp>
#include <fanout/model/per_replica.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/plan/dealt_split.hpp>
#include <fanout/scatter/range.hpp>
#include <fanout/simulated.hpp>
#include <fanout/waiting/wait_policy.hpp>

#include "support/meeting.hpp"

using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Range;
using fanout::RowRange;

namespace floating_point_test {

using Modes = std::vector<int>;

/// Rounds as a caller may while it lives.
class Rounding {
 public:
  explicit Rounding(int mode) { std::fesetround(mode); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;
  ~Rounding() { std::fesetround(before_); }

 private:
  int before_ = std::fegetround();
};

/// The rounding direction of each row's shard.
Modes seen(RowRange rows) { return Modes(rows.size(), std::fegetround()); }

/// The same, and leaves another direction behind.
Modes seen_and_changed(RowRange rows) {
  Modes modes = seen(rows);
  std::fesetround(FE_TOWARDZERO);
  return modes;
}

/// Shards that run at the same time, so on different threads.
struct AtOnce {
  fanout_test::Meeting* meeting;
  Modes forward(RowRange rows) const {
    meeting->come();
    return seen_and_changed(rows);
  }
};

/// Shards that wait for each other.
struct Meets {
  Modes forward(fanout::Context auto& ctx, RowRange rows) const {
    std::vector<double> sum{1.0};
    ctx.communicator().all_reduce(sum);
    return seen_and_changed(rows);
  }
};

const int directions[] = {FE_UPWARD, FE_TONEAREST, FE_DOWNWARD};

}  // namespace floating_point_test

using namespace floating_point_test;  // NOLINT(google-build-using-namespace)

TEST_CASE("shards on all threads round as the caller of each call does, whatever the call before has left") {
  for (const int mode : directions) {
    const Rounding caller(mode);
    fanout_test::Meeting meeting(3);
    const ParallelModel model{AtOnce{&meeting}, host_devices(3)};
    CHECK(model(Range{9}) == Modes(9, mode));
    CHECK(std::fegetround() == mode);
  }
}

TEST_CASE("shards that one thread runs after each other do not see each other's modes") {
  for (const int mode : directions) {
    const Rounding caller(mode);
    const ParallelModel polled{seen_and_changed, host_devices({.count = 2, .wait = fanout::Spin{}})};
    const ParallelModel asleep{seen_and_changed, host_devices({.count = 3, .wait = fanout::Park{}})};
    const ParallelModel simulated{seen_and_changed,
                                  fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(3))};
    const ParallelModel dealt{seen_and_changed, host_devices(2), Options{.split = fanout::DealtSplit{}}};
    for (int call = 0; call < 50; ++call) {
      CHECK(polled(Range{10}) == Modes(10, mode));
      CHECK(asleep(Range{9}) == Modes(9, mode));
      CHECK(simulated(Range{9}) == Modes(9, mode));
      CHECK(dealt(Range{100}) == Modes(100, mode));
      CHECK(std::fegetround() == mode);
    }
  }
}

TEST_CASE("asynchronous calls round as the thread did that made them") {
  const ParallelModel model{seen_and_changed, host_devices(2)};
  const ParallelModel dealt{seen_and_changed, host_devices(2), Options{.split = fanout::DealtSplit{}}};
  const ParallelModel summed{[](RowRange rows) { return fanout::psum(rows.size() == 2 ? 1.0 : 1e-30); },
                             host_devices(2)};
  for (const int mode : directions) {
    auto rounded = [&] {
      const Rounding caller(mode);
      return std::tuple(model.async(Range{6}), dealt.async(Range{60}), summed.async(Range{3}));
    }();
    auto& [plain, whole, sum] = rounded;
    CHECK(plain.get() == Modes(6, mode));
    CHECK(whole.get() == Modes(60, mode));
    CHECK((sum.get() > 1) == (mode == FE_UPWARD));
    CHECK(std::fegetround() == FE_TONEAREST);
  }
}

TEST_CASE("calls inside of forward round as that forward does") {
  const ParallelModel inner{seen_and_changed, host_devices(2)};
  const ParallelModel outer{[&inner](RowRange rows) {
                              const Rounding up(FE_UPWARD);
                              Modes modes = inner(Range{rows.size()});
                              if (std::fegetround() != FE_UPWARD) modes.assign(rows.size(), -1);
                              return modes;
                            },
                            host_devices(2)};
  CHECK(outer(Range{8}) == Modes(8, FE_UPWARD));
}

TEST_CASE("copies of a model are made under the modes of the call that needs them, also by a factory") {
  struct Copied {
    int mode = -1;
    Copied() = default;
    Copied(const Copied&) : mode(std::fegetround()) {}
    Copied& operator=(const Copied&) = default;
    Modes forward(RowRange rows) { return Modes(rows.size(), mode); }
  };
  struct Made {
    int mode = std::fegetround();
    Modes forward(RowRange rows) const { return Modes(rows.size(), mode); }
  };
  const ParallelModel copied{Copied{}, host_devices(3)};
  const Rounding caller(FE_UPWARD);
  const ParallelModel made{fanout::factory([] { return Made{}; }), host_devices(3)};
  const Rounding later(FE_DOWNWARD);
  CHECK(copied(Range{9}) == Modes(9, FE_DOWNWARD));
  CHECK(made(Range{9}) == Modes(9, FE_UPWARD));
}

TEST_CASE("shards that get threads of their own for a collective round as their caller does") {
  const ParallelModel outer{[](RowRange rows) {
                              // Some devices are busy with shards of the outer model.
                              const ParallelModel inner{Meets{}, host_devices(4)};
                              return inner(Range{rows.size()});
                            },
                            host_devices(2)};
  const Rounding caller(FE_UPWARD);
  CHECK(outer(Range{16}) == Modes(16, FE_UPWARD));
}

TEST_CASE("a shard that runs again rounds as its caller does") {
  std::vector<fanout::SimulatedDeviceOptions> options(3);
  options[1].fail_at = 1;
  const ParallelModel model{seen_and_changed, fanout::simulated_devices(options),
                            Options{.retry = fanout::Retry{.times = 1}}};
  const Rounding caller(FE_UPWARD);
  CHECK(model(Range{9}) == Modes(9, FE_UPWARD));
  CHECK(std::fegetround() == FE_UPWARD);
}
