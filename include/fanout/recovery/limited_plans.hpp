// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <utility>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The plans of a call that may be made again with fewer rows at a time: see Options::shrink_on_out_of_memory. Empty
/// for all other calls.
class LimitedPlans {
  struct Kept {
    const Recovery& recovery;
    const Plan planned;
    const std::uint64_t shape;
  };

 public:
  LimitedPlans() noexcept = default;
  LimitedPlans(LimitedPlans&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
  LimitedPlans& operator=(LimitedPlans&&) = delete;
  ~LimitedPlans() {
    if (kept_ != nullptr) [[unlikely]]
      release();
  }

  /// Borrows what the model has learnt. `planned` is the plan without limits. Call it once.
  FANOUT_INLINE void begin(const Recovery& recovery, const Plan& planned, std::uint64_t shape);

  explicit operator bool() const noexcept { return kept_ != nullptr; }

  /// The plan within what is known by now: limits, and devices that are left out.
  FANOUT_INLINE Plan next() const;

 private:
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void release() noexcept;

  Kept* kept_ = nullptr;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/recovery/limited_plans.ipp>
#endif
