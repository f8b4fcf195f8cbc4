// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

struct NoGradients {
  friend constexpr bool operator==(NoGradients, NoGradients) noexcept { return true; }
};

}  // namespace detail

/// Among what Pipeline::train() returns, in place of the gradients of a stage that goes forward only: see there.
inline constexpr detail::NoGradients no_gradients{};

}}  // namespace fanout::v0
