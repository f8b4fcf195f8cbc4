// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
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

/// Calls `look(rank, pieces...)` in each shard of a call with these arguments, on so many host devices.
template <class Look, class... Args>
void look_at_shards(int devices, const Look& look, const Args&... args) {
  const fanout::ParallelModel model{[&look](fanout::Context auto& ctx, auto&&... pieces) {
                                      look(ctx.rank(), std::forward<decltype(pieces)>(pieces)...);
                                    },
                                    fanout::host_devices(devices)};
  model(args...);
}

/// What becomes of `returned(rank)` of each of so many shards, which have two rows each.
template <class Returned>
auto gathered_from(int shards, const Returned& returned) {
  const fanout::ParallelModel model{
      [&returned](fanout::Context auto& ctx, fanout::View<const int, 1>) { return returned(ctx.rank()); },
      fanout::host_devices(shards)};
  return model(count_to(2 * static_cast<std::size_t>(shards)));
}

}  // namespace conformance
