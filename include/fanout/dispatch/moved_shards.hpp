// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/deal.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The shards of one call that run on other devices than planned: the deal, if the plan is dealt, and the plan as it
/// was run. Empty for all other calls.
class MovedShards {
 public:
  MovedShards() noexcept = default;
  MovedShards(const MovedShards&) = delete;
  MovedShards& operator=(const MovedShards&) = delete;
  ~MovedShards() {
    if (moved_ != nullptr) [[unlikely]]
      release();
  }

  /// Deals the shards of a plan. Forgets all before.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE Deal& deal(const Plan& plan, const DeviceTable& devices,
                                                        const BlockRunner& runner);

  /// Forgets all.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void release() noexcept;

  /// The deal; null if there is none.
  Deal* deal() const noexcept { return moved_ != nullptr && moved_->deal ? &*moved_->deal : nullptr; }

  /// The plan as it was run, in which the i-th shard is moved to another device. `before` is the plan up to now.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE const Plan& move(const Plan& before, std::size_t i, std::size_t device);

 private:
  struct Moved : Pooled {
    std::optional<Deal> deal;
    Plan as_run;
  };

  Moved* moved_ = nullptr;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/dispatch/moved_shards.ipp>
#endif
