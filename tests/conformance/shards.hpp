// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"

namespace conformance {

/// Tells which device ran which rows, as `host:0[0, 3)`.
struct Tell {
  std::string forward(fanout::Context auto& ctx, const auto&...) const {
    return to_string(ctx.device().id()) + to_string(ctx.rows());
  }
};

/// A batch of so many rows whose values are their own numbers.
using fanout_test::count_to;
using fanout_test::values;

/// Calls `look(i, pieces...)` with what the i-th shard is handed of these arguments, on so many host devices. By
/// scatter() alone, which is quicker to compile than a model.
template <class Look, class... Args>
void look_at_shards(int devices, const Look& look, const Args&... args) {
  const auto inputs = fanout::scatter(fanout::host_devices(devices), args...);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::apply([&](auto&&... pieces) { look(i, std::forward<decltype(pieces)>(pieces)...); }, inputs[i]);
  }
}

/// What becomes of `returned(i)` of each of so many shards, which have two rows each. By gather() alone, which is
/// quicker to compile than a model.
template <class Returned>
auto gathered_from(int shards, const Returned& returned) {
  using R = decltype(returned(std::size_t{}));
  const auto devices = fanout::host_devices(shards);
  const fanout::Plan plan = fanout::EvenSplit{}(2 * devices.size(), devices.size());
  const fanout::detail::InlineArray<R> results(devices.size(), returned);
  fanout::ShardResults<R> pieces(devices.size(), true);
  for (std::size_t i = 0; i < results.size(); ++i) pieces.set(i, results[i]);
  return fanout::gather(pieces, {plan, devices.ids().data(), {}});
}

}  // namespace conformance
