// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <type_traits>

#include <fanout/context/shard_context.hpp>
#include <fanout/replica/placed_model.hpp>

namespace {

using fanout::HostDevice;
using fanout::detail::CallScope;
using fanout::detail::PlacedModel;

struct Model {
  int value = 3;
  const int& forward(int) const { return value; }
};

struct Watches {
  const CallScope* caller;
  bool forward() const {
    const CallScope* const inside = fanout::detail::current_call();
    return inside != nullptr && inside->caller == caller && inside->original == this && !inside->busy;
  }
};

}  // namespace

TEST_CASE("a placed model runs on its device, in its own call scope") {
  const fanout::DeviceSet<HostDevice> devices = fanout::host_devices(2);
  const fanout::Plan plan{{.rows = {0, 1}, .device = 0}};
  const fanout::detail::CallSettings settings;
  fanout::detail::CallState frame{plan, settings};
  fanout::detail::Scratch scratch;
  fanout::ShardContext<HostDevice> ctx{devices[1], frame, 0, scratch};
  const Model model;
  const PlacedModel placed(model, devices[1]);
  CHECK(&placed.device() == &devices[1]);
  CHECK(placed.run(nullptr, ctx, 1) == 3);
  static_assert(std::is_same_v<decltype(placed.run(nullptr, ctx, 1)), int>, "a value also for a reference");

  const CallScope caller;
  const Watches watches{&caller};
  CHECK(PlacedModel(watches, devices[0]).run(&caller, ctx));
  CHECK(fanout::detail::current_call() == nullptr);
}
