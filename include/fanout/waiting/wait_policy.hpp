// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstdint>

namespace fanout { inline namespace v0 {

/// How threads wait: those of the devices for the next call, and a call for its shards.
struct WaitRules {
  static constexpr std::int64_t forever = INT64_MAX;

  /// How long a thread spins before it sleeps, in nanoseconds.
  std::int64_t spin = 0;
  /// Upper bound of the spin for long shards, in nanoseconds. A thread then spins for 1/8 of the expected shard time,
  /// since the times of long shards differ more. Needs `inlines_small`, which measures them.
  std::int64_t longest_spin = 0;
  /// True if a device's thread that sleeps wakes up by itself shortly before the next call, if calls come at regular
  /// intervals.
  bool predicts = false;
  /// True if a call runs shards inline, on its own thread, if dispatching them would take longer.
  bool inlines_small = false;
};

namespace detail {

/// WaitRules in one word, so that threads read and write them atomically, and keep no pointer into a library that may
/// be closed. Times are stored in steps of 64 ns, rounded up. Two minutes or more count as `forever`.
struct RulesWord {
  static constexpr std::uint64_t of(const WaitRules& rules) noexcept {
    return steps(rules.spin) << 33U | steps(rules.longest_spin) << 2U | (rules.predicts ? 2U : 0U) |
           (rules.inlines_small ? 1U : 0U);
  }
  static constexpr WaitRules rules(std::uint64_t word) noexcept {
    return {.spin = span(word >> 33U),
            .longest_spin = span(word >> 2U & most),
            .predicts = (word & 2U) != 0,
            .inlines_small = (word & 1U) != 0};
  }

 private:
  static constexpr std::uint64_t most = 0x7fffffff;
  static constexpr std::int64_t step = 64;

  static constexpr std::uint64_t steps(std::int64_t span) noexcept {
    if (span <= 0) return 0;
    const auto whole = static_cast<std::uint64_t>((span - 1) / step) + 1;
    return whole < most ? whole : most;
  }
  static constexpr std::int64_t span(std::uint64_t steps) noexcept {
    return steps == most ? WaitRules::forever : static_cast<std::int64_t>(steps) * step;
  }
};

}  // namespace detail

/// A wait policy: a type with `static constexpr WaitRules rules`. Spin, Park and Adaptive are wait policies. Your own
/// may look like this:
///
///     struct Patient {
///       static constexpr fanout::WaitRules rules{.spin = 200'000};
///     };
///     fanout::host_devices({.count = 2, .wait = Patient{}});
template <class P>
concept WaitPolicy = requires {
  { P::rules } -> std::same_as<const WaitRules&>;
};

/// Never sleeps: the shortest latency, at the cost of one core per device, forever, once the device has been used.
struct Spin {
  static constexpr WaitRules rules{.spin = WaitRules::forever};
};

/// Sleeps at once: idle devices use no core, and each call pays the wake-up latency.
struct Park {
  static constexpr WaitRules rules{};
};

/// The default. Spins for about the wake-up latency, or for 1/8 of a long shard, then sleeps. Wakes up before calls
/// that it predicts. A call dispatches only shards that take longer than their dispatch, so it is not slower than a
/// loop over the shards.
struct Adaptive {
  static constexpr WaitRules rules{.spin = 50'000, .longest_spin = 2'000'000, .predicts = true, .inlines_small = true};
};

/// A wait policy as a value.
class Waiting {
 public:
  template <WaitPolicy P>
  constexpr Waiting(P) noexcept : rules_(&P::rules) {}  // NOLINT(google-explicit-constructor): .wait = Spin{}

  template <class P>
    requires(!WaitPolicy<P>)
  constexpr Waiting(const P&) noexcept : Waiting(Adaptive()) {  // NOLINT(google-explicit-constructor): refused
    static_assert(
        WaitPolicy<P>,
        "fanout: this type is not a wait policy; use fanout::Spin{}, Park{}, Adaptive{}, or your own type with a "
        "static constexpr fanout::WaitRules rules");
  }

  constexpr const WaitRules& rules() const noexcept { return *rules_; }

  friend constexpr bool operator==(const Waiting&, const Waiting&) = default;

 private:
  const WaitRules* rules_;
};

}}  // namespace fanout::v0
