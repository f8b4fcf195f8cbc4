// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <optional>

namespace fanout { inline namespace v0 { namespace detail {

/// The value of an optional that an earlier step has set. Tools that check optionals do not know the order of steps.
template <class T>
T& made(std::optional<T>& value) noexcept {
  return *value;  // NOLINT(bugprone-unchecked-optional-access)
}

}}}  // namespace fanout::v0::detail
