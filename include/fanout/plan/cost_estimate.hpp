// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

/// The time of a shard on one device: `fixed + rows * per_row` seconds.
struct ShardCost {
  double fixed = 0;
  double per_row = 0;  ///< 0: unknown

  double of(double rows) const noexcept { return fixed + rows * per_row; }
};

/// Learns the cost of the shards of one device from their rows and seconds.
///
/// A small deviation is averaged away: the mean of the last `memory` shards counts. A large one is believed at once,
/// since then the device has become faster or slower, or the shard has another size than the ones before. In the latter
/// case the two sizes tell how much of the time does not depend on the rows.
class CostEstimate {
 public:
  const ShardCost& cost() const noexcept { return cost_; }
  bool is_known() const noexcept { return cost_.per_row > 0; }

  /// True if shards of two sizes were measured, so that the fixed part of the time is known.
  bool knows_fixed() const noexcept { return knows_fixed_; }
  /// That part, at the size of the last shards.
  double fixed_part() const noexcept { return seconds_ > 0 ? std::min(1.0, cost_.fixed / seconds_) : 0; }
  /// The cost if so large a part of the time of the last shards is fixed.
  ShardCost with_fixed_part(double part) const noexcept {
    if (rows_ <= 0) return cost_;
    const double seconds = cost_.of(rows_);
    return {.fixed = part * seconds, .per_row = std::max(1 - part, 0.01) * seconds / rows_};
  }

  /// The least seconds that so many rows may take. It is the known cost if the last shards had about as many rows.
  /// For many more rows it may be less, since a part of the time may be fixed that is not known: all of it as long as
  /// all shards had one size, and later as much as noise hides. `with_room` leaves room for noise.
  double least_of(double rows, bool with_room) const noexcept {
    const double seconds = cost_.of(rows);
    if (rows < large * rows_) return seconds;
    const double last = with_room ? large * seconds_ : seconds_;
    return std::min(seconds, std::max(last, knows_fixed_ ? (1 - hidden) * seconds : 0));
  }

  /// Begins with a guess, which the first shard corrects.
  void guess(const ShardCost& cost) noexcept {
    cost_ = cost;
    shards_ = 0;
  }

  void observe(double rows, double seconds) noexcept {
    if (rows <= 0) return;
    seconds = std::max(seconds, 1e-9);  // a clock may see no time pass
    const bool resized = rows_ > 0 && (rows > 1.25 * rows_ || 1.25 * rows < rows_);
    knows_fixed_ = knows_fixed_ || resized;
    const ShardCost line = resized ? line_through(rows, seconds) : cost_;
    const double times = seconds / cost_.of(rows);
    if (!is_known()) {
      cost_ = {.per_row = seconds / rows};
      shards_ = 1;
    } else if (line.fixed != cost_.fixed) {
      cost_ = line;
      shards_ = 1;
    } else if (shards_ == 0 || times > large || times * large < 1) {
      cost_ = {.fixed = times * cost_.fixed, .per_row = times * cost_.per_row};
      shards_ = 1;
    } else {
      const double closer = 1 + (times - 1) / static_cast<double>(std::min(++shards_, memory));
      cost_ = {.fixed = closer * cost_.fixed, .per_row = closer * cost_.per_row};
    }
    // Sizes that creep away do not count in the mean, so that they become another size.
    if (!resized && of_size_ > 0 && std::abs(rows - rows_) > same_size * rows_) return;
    of_size_ = resized ? 1 : std::min(of_size_ + 1, memory);
    rows_ += (rows - rows_) / static_cast<double>(of_size_);
    seconds_ += (seconds - seconds_) / static_cast<double>(of_size_);
  }

 private:
  static constexpr double large = 1.25;
  static constexpr double same_size = 0.05;  // relative
  static constexpr std::size_t memory = 32;
  static constexpr double noise = 0.06;   // relative; a shard's time may deviate so much without a reason
  static constexpr double hidden = 0.15;  // relative; so much may be fixed that is taken for noise

  /// The line through the shards before and this one of another size. The known cost, if the line says no more than
  /// noise could.
  ShardCost line_through(double rows, double seconds) const noexcept {
    const double slope = (seconds - seconds_) / (rows - rows_);
    const double fixed = seconds - slope * rows;
    const double uncertain = noise * (seconds * rows_ + seconds_ * rows) / std::abs(rows - rows_);
    if (slope <= 0 || std::abs(fixed - cost_.fixed) <= uncertain) return cost_;
    if (fixed <= 0) return {.per_row = seconds / rows};
    return {.fixed = fixed, .per_row = std::max(slope, 0.01 * seconds / std::max(rows, rows_))};
  }

  ShardCost cost_;
  std::size_t shards_ = 0;   // since the last large deviation
  double rows_ = 0;          // mean of the last shards of about one size
  double seconds_ = 0;       // as well
  std::size_t of_size_ = 0;  // how many these are
  bool knows_fixed_ = false;
};

}}}  // namespace fanout::v0::detail
