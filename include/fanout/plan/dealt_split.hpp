// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/plan/any_split.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

/// Cuts the rows into blocks, which go to the devices that are free:
///
///     {.split = fanout::DealtSplit{fanout::MeasuredSplit{}}}
///
/// Another policy says how many rows each device should have, by default EvenSplit. The blocks of a device are a
/// quarter of its rows, a quarter of the rest, and so on, up to 14 (weighted factoring: S. F. Hummel, J. Schmidt, R. N.
/// Uma and J. Wein, "Load-sharing in heterogeneous systems via weighted factoring", SPAA 1996). A device that has run
/// its own blocks takes over small blocks of others. So a device that becomes slower during a call delays the call by
/// one block at most.
///
/// Each block is a shard: `forward` runs for each, ctx.size() counts them, and results and reductions go in their
/// order. So values do not depend on which device ran a block. Only calls with a const `forward`, no collectives and no
/// fields of their own on each device are dealt. In others, each block runs where it was planned. One thread makes an
/// asynchronous dealt call as a whole: that of the main device, or one that waits for the result. A GPU waits for each
/// block before it takes the next one.
template <Split S = EvenSplit>
class DealtSplit {
 public:
  DealtSplit() = default;
  /// Deals the rows that `shares` gives to each device.
  explicit DealtSplit(S shares) : shares_(std::move(shares)) {}

  /// The plan for `rows` rows. Not dealt if there are fewer than two rows for each device. Throws what the other policy
  /// throws, and InvalidArgument if its plan is not valid.
  Plan operator()(std::size_t rows, std::size_t devices) const {
    Plan shares = shares_(rows, devices);
    if (rows < 2 * devices) return shares;
    check_plan(shares, rows, devices);
    Plan plan;
    std::size_t next = 0;
    for (std::size_t round = 1; next < rows; ++round) {
      for (const Shard& share : shares) {
        const std::size_t size = size_of_block(share.rows.size(), round);
        if (size == 0) continue;
        plan.add({.rows = {next, next + size}, .device = share.device});
        next += size;
      }
    }
    plan.deal();
    return plan;
  }

  /// Both are for the other policy, if it has them.
  void begin(const DeviceId* devices, std::size_t count) requires requires(S& s) { s.begin(devices, count); }
  { shares_.begin(devices, count); }
  void observe(const CallTimes& call) requires detail::ObservesCalls<S> { shares_.observe(call); }

  /// The policy that says how many rows each device should have.
  const S& shares() const noexcept { return shares_; }

 private:
  static constexpr std::size_t rounds = 14;

  /// The rows of a device's block in a round: a quarter of those that the rounds before have left.
  static constexpr std::size_t size_of_block(std::size_t rows, std::size_t round) noexcept {
    for (std::size_t before = 1; before < round; ++before) rows -= (rows + 3) / 4;
    return round == rounds ? rows : (rows + 3) / 4;
  }

  S shares_;
};
static_assert(Split<DealtSplit<>>);

}}  // namespace fanout::v0
