// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/base/any_function.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

/// A split policy of any type, by value, so that Options needs no template parameter. A call asks it once, through one
/// function pointer. The default is EvenSplit, which is called directly.
class AnySplit {
 public:
  AnySplit() noexcept = default;

  template <class S>
    requires(!std::is_same_v<std::remove_cvref_t<S>, AnySplit> && Split<std::remove_cvref_t<S>>)
  AnySplit(S&& split)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): .split = EvenSplit{}
      : other_(other_than_even(std::forward<S>(split))) {}

  Plan operator()(std::size_t rows, std::size_t devices) const {
    if (is_even()) [[likely]]
      return EvenSplit{}(rows, devices);
    return other_(rows, devices);
  }

  /// True for an EvenSplit, whose plans need no check.
  bool is_even() const noexcept { return !other_; }

 private:
  using Other = detail::AnyFunction<Plan(std::size_t, std::size_t)>;

  template <class S>
  static Other other_than_even(S&& split) {
    if constexpr (std::is_same_v<std::remove_cvref_t<S>, EvenSplit>) {
      return {};
    } else {
      return Other(std::forward<S>(split));
    }
  }

  Other other_;
};

}}  // namespace fanout::v0
