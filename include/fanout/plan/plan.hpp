// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout::inline v0 {

/// A row range and the device that runs it, by its position in the device set.
struct Shard {
  RowRange rows;
  std::size_t device = 0;

  friend constexpr bool operator==(const Shard&, const Shard&) = default;
};

/// The shards of one call, in row order. A list and not an array indexed by device: a device may be idle or, with a
/// split policy that says so, get several shards. Up to eight shards need no allocation.
class Plan {
 public:
  constexpr Plan() = default;
  constexpr Plan(std::initializer_list<Shard> shards) {
    for (const Shard& shard : shards) add(shard);
  }

  constexpr void add(const Shard& shard) {
    if (few_size_ < few_.size()) {
      few_[few_size_++] = shard;
    } else {
      for (std::size_t i = many_.size(); i < few_size_; ++i) many_.push_back(few_[i]);
      many_.push_back(shard);
    }
  }

  constexpr std::size_t size() const noexcept { return many_.empty() ? few_size_ : many_.size(); }
  constexpr const Shard& operator[](std::size_t i) const noexcept { return begin()[i]; }
  constexpr const Shard* begin() const noexcept { return many_.empty() ? few_.data() : many_.data(); }
  constexpr const Shard* end() const noexcept { return begin() + size(); }

  /// The rows of all shards together.
  constexpr std::size_t rows() const noexcept { return size() == 0 ? 0 : (*this)[size() - 1].rows.end; }

  friend constexpr bool operator==(const Plan& a, const Plan& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

 private:
  std::array<Shard, 8> few_{};
  std::size_t few_size_ = 0;
  std::vector<Shard> many_;  // all shards, when they are more than the few; a plan that was moved from has the few left
};

/// Throws InvalidArgument unless the shards are in row order, cover [0, rows) without gap or overlap and name devices
/// below `devices`: what scatter and gather rely on, whoever wrote the split policy.
constexpr void check_plan(const Plan& plan, std::size_t rows, std::size_t devices) {
  const auto refuse = [&](std::size_t i, const std::string& found) {
    throw InvalidArgument(explain({.what = "invalid plan",
                                   .where = "shard " + std::to_string(i),
                                   .expected = "shards in row order that cover " + to_string(RowRange{0, rows}) +
                                               " on devices 0 to " + std::to_string(devices - 1),
                                   .found = found,
                                   .advice = "mend the split policy"}));
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Shard& shard = plan[i];
    if (shard.device >= devices) refuse(i, "device " + std::to_string(shard.device));
    if (shard.rows.begin != next || shard.rows.end < shard.rows.begin) refuse(i, "rows " + to_string(shard.rows));
    next = shard.rows.end;
  }
  if (plan.size() == 0 || next != rows) refuse(plan.size(), "an end after " + std::to_string(next) + " rows");
}

}  // namespace fanout::inline v0
