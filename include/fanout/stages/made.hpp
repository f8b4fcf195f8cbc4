// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <optional>

namespace fanout { inline namespace v0 { namespace detail {

/// What an earlier step has made: the order of the steps is known, but not to those who check optionals.
template <class T>
T& made(std::optional<T>& value) noexcept {
  return *value;  // NOLINT(bugprone-unchecked-optional-access)
}

}}}  // namespace fanout::v0::detail
