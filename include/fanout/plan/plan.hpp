// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/base/text.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/plan/shard.hpp>

namespace fanout { inline namespace v0 {

/// The shards of one call, in row order. It is a list, not an array indexed by device: a device may be idle, or get
/// several shards from a split policy. Up to eight shards need no allocation.
class Plan {
 public:
  constexpr Plan() {}  // NOLINT(modernize-use-equals-default): that would set all of it to zero
  constexpr Plan(std::initializer_list<Shard> shards) {
    for (const Shard& shard : shards) add(shard);
  }

  /// Makes `size` shards. The i-th one is `make(i)`.
  template <class Make>
  constexpr Plan(std::size_t size, const Make& make) : shards_(size, make) {}

  /// Appends a shard, unchecked: see check_plan().
  constexpr void add(const Shard& shard) { shards_.push_back(shard); }

  /// Lets each shard run on any device that is free; its own one is a proposal. See DealtSplit.
  constexpr void deal() noexcept { order_ |= dealt; }
  constexpr bool is_dealt() const noexcept { return (order_ & dealt) != 0; }

  /// Lets the shards of a device run one after the other. Each releases the memory of the device before the next one
  /// begins, but for results that borrow it: see Options::shrink_on_out_of_memory.
  constexpr void run_in_turns() noexcept { order_ |= in_turns; }
  constexpr bool runs_in_turns() const noexcept { return (order_ & in_turns) != 0; }

  /// True if the plan is not dealt, and its shards may run at the same time.
  constexpr bool is_ordinary() const noexcept { return order_ == 0; }

  constexpr std::size_t size() const noexcept { return shards_.size(); }
  constexpr const Shard& operator[](std::size_t i) const noexcept { return shards_[i]; }
  constexpr const Shard* begin() const noexcept { return shards_.begin(); }
  constexpr const Shard* end() const noexcept { return shards_.end(); }

  /// The number of rows of all shards together.
  constexpr std::size_t rows() const noexcept { return size() == 0 ? 0 : (*this)[size() - 1].rows.last; }

  friend constexpr bool operator==(const Plan&, const Plan&) = default;

 private:
  static constexpr std::uint8_t dealt = 1;
  static constexpr std::uint8_t in_turns = 2;

  detail::SmallVector<Shard> shards_;
  std::uint8_t order_ = 0;  // of these bits
};

/// The plan as text: `[0, 15) on 0, [15, 30) on 1`.
inline std::string to_string(const Plan& plan) {
  detail::Text text;
  for (const Shard& shard : plan) {
    text << (text.empty() ? "" : ", ") << shard.rows << " on " << shard.device;
  }
  return text;
}

/// Throws InvalidArgument unless the shards are in row order, cover [0, rows) without gap or overlap, and name devices
/// below `devices`. scatter() and gather() rely on that, whoever wrote the split policy.
constexpr void check_plan(const Plan& plan, std::size_t rows, std::size_t devices) {
  const auto refuse = [&](std::size_t i, const std::string& found) {
    throw InvalidArgument(explain({.what = "invalid plan",
                                   .where = detail::Text() << "shard " << i,
                                   .expected = detail::Text() << "shards in row order that cover " << RowRange{0, rows}
                                                              << " on devices 0 to " << devices - 1,
                                   .found = found,
                                   .advice = "mend the split policy"}));
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Shard& shard = plan[i];
    if (shard.device >= devices) refuse(i, detail::Text() << "device " << shard.device);
    if (shard.rows.first != next || shard.rows.last < shard.rows.first)
      refuse(i, detail::Text() << "rows " << shard.rows);
    next = shard.rows.last;
  }
  if (plan.size() == 0 || next != rows) refuse(plan.size(), detail::Text() << "an end after " << next << " rows");
}

}}  // namespace fanout::v0
