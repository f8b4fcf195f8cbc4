// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>
#include <type_traits>

namespace fanout { inline namespace v0 {

/// A type with the interface of std::chrono::duration. Checked by its members, so that `<chrono>` need not be included.
template <class D>
concept DurationLike = requires(const D& duration) {
  static_cast<double>(duration.count());
  static_cast<double>(D::period::num) / static_cast<double>(D::period::den);
};

/// A span of time in nanoseconds, made from any duration: `Duration(std::chrono::milliseconds(50))`. Spans beyond 64
/// bits, about 290 years, become the longest one. A number without a unit does not compile.
class Duration {
 public:
  constexpr Duration() noexcept = default;
  template <DurationLike D>
  constexpr Duration(const D& duration)  // NOLINT(google-explicit-constructor): .deadline = 50ms
      : nanoseconds_(from(static_cast<double>(duration.count()) *
                          (1e9 * static_cast<double>(D::period::num) / static_cast<double>(D::period::den)))) {}

  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr Duration(const Number&) noexcept {  // NOLINT(google-explicit-constructor): refused
    static_assert(DurationLike<Number>, "fanout: a time needs a unit, such as std::chrono::milliseconds(50)");
  }

  /// The longest duration: no deadline.
  static constexpr Duration forever() noexcept {
    Duration longest;
    longest.nanoseconds_ = INT64_MAX;
    return longest;
  }

  constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }

  friend constexpr bool operator==(const Duration&, const Duration&) = default;

 private:
  static constexpr std::int64_t from(double nanoseconds) noexcept {
    constexpr std::int64_t longest = INT64_MAX;
    constexpr double end = 9223372036854775808.0;  // 2^63, the first value that an int64_t cannot hold
    if (!(nanoseconds < end)) return longest;
    return nanoseconds > -end ? static_cast<std::int64_t>(nanoseconds) : -longest;
  }

  std::int64_t nanoseconds_ = 0;
};

}}  // namespace fanout::v0
