// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstddef>

#include <fanout/plan/split.hpp>

namespace {

using fanout::Plan;
using fanout::Split;

struct Good {
  Plan operator()(std::size_t rows, std::size_t) const { return {{{0, rows}, 0}}; }
};
static_assert(Split<Good>);
static_assert(Split<Plan (*)(std::size_t, std::size_t)>, "a function is an object that can be copied");

struct ReturnsWhatBecomesAPlan {
  struct Convertible {
    operator Plan() const { return {}; }
  };
  Convertible operator()(std::size_t, std::size_t) const { return {}; }
};
static_assert(Split<ReturnsWhatBecomesAPlan>);

struct NotConst {
  Plan operator()(std::size_t, std::size_t) { return {}; }
};
static_assert(!Split<NotConst>);

struct NotCopyable : Good {
  NotCopyable() = default;
  NotCopyable(const NotCopyable&) = delete;
  NotCopyable& operator=(const NotCopyable&) = delete;
};
static_assert(!Split<NotCopyable>);

struct OneArgument {
  Plan operator()(std::size_t) const { return {}; }
};
static_assert(!Split<OneArgument>);

struct NoPlan {
  std::size_t operator()(std::size_t rows, std::size_t) const { return rows; }
};
static_assert(!Split<NoPlan>);
static_assert(!Split<int>);

}  // namespace
