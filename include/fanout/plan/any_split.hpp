// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/base/any_function.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/split.hpp>

namespace fanout::inline v0 {

/// A split policy of any type, by value, so that options need no template parameter. It is asked once per call, through
/// one function pointer; the default is EvenSplit.
class AnySplit {
 public:
  AnySplit() : AnySplit(EvenSplit{}) {}

  template <class S>
    requires(!std::is_same_v<std::remove_cvref_t<S>, AnySplit> && Split<std::remove_cvref_t<S>>)
  AnySplit(S&& split)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): .split = EvenSplit{}
      : split_(std::forward<S>(split)) {}

  Plan operator()(std::size_t rows, std::size_t devices) const { return split_(rows, devices); }

 private:
  AnyFunction<Plan(std::size_t, std::size_t)> split_;
};
static_assert(Split<AnySplit>);

}  // namespace fanout::inline v0
