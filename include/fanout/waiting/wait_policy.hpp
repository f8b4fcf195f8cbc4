// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstdint>

namespace fanout { inline namespace v0 {

/// How threads wait: those of the devices for the next call, and a call for its shards.
struct WaitRules {
  static constexpr std::int64_t forever = INT64_MAX;

  /// How long a thread looks again and again before it sleeps, in nanoseconds.
  std::int64_t spin = 0;
  /// How long at most one looks where a shard takes long: for an eighth of that, since shards that take longer differ
  /// more. Where that is known, so with `keeps_small`.
  std::int64_t longest_spin = 0;
  /// Whether a device's thread that sleeps wakes by itself before the next call, where calls come at regular gaps.
  bool foresees = false;
  /// Whether a call runs shards on its own thread that would take less time than it takes to hand them out.
  bool keeps_small = false;
};

namespace detail {

/// WaitRules in one word, so that threads read and write them at once, and keep no pointer into a library that may be
/// closed. Spans are kept in steps of 64 ns, rounded up; from two minutes on they are `forever`.
struct RulesWord {
  static constexpr std::uint64_t of(const WaitRules& rules) noexcept {
    return steps(rules.spin) << 33U | steps(rules.longest_spin) << 2U | (rules.foresees ? 2U : 0U) |
           (rules.keeps_small ? 1U : 0U);
  }
  static constexpr WaitRules rules(std::uint64_t word) noexcept {
    return {.spin = span(word >> 33U),
            .longest_spin = span(word >> 2U & most),
            .foresees = (word & 2U) != 0,
            .keeps_small = (word & 1U) != 0};
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

/// A way to wait, as a type: `P::rules` says what it does. Spin, Park and Adaptive are such, and one of your own may
/// be:
///
///     struct Patient {
///       static constexpr fanout::WaitRules rules{.spin = 200'000};
///     };
///     fanout::host_devices({.count = 2, .wait = Patient{}});
template <class P>
concept WaitPolicy = requires {
  { P::rules } -> std::same_as<const WaitRules&>;
};

/// Never sleeps: the shortest latency at any gap, and one core for each device that has been used, for ever.
struct Spin {
  static constexpr WaitRules rules{.spin = WaitRules::forever};
};

/// Sleeps at once: uses no core that has nothing to do, and each call pays for a wake.
struct Park {
  static constexpr WaitRules rules{};
};

/// The default. Looks for about as long as a wake takes, or for an eighth of a long shard, then sleeps; wakes before
/// calls that can be foreseen; and a call hands out only what takes longer than handing it out, so that it is not slower
/// than the same work in a row.
struct Adaptive {
  static constexpr WaitRules rules{.spin = 50'000, .longest_spin = 2'000'000, .foresees = true, .keeps_small = true};
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
        "fanout: this is no way to wait; give fanout::Spin{}, Park{}, Adaptive{}, or a type of your own with a "
        "static constexpr fanout::WaitRules rules");
  }

  constexpr const WaitRules& rules() const noexcept { return *rules_; }

  friend constexpr bool operator==(const Waiting&, const Waiting&) = default;

 private:
  const WaitRules* rules_;
};

}}  // namespace fanout::v0
