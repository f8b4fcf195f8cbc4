// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How a call must be ordered with other calls on the same replica.
enum class CallOrder {
  any,            ///< any order: it reads what only update() changes
  after_changes,  ///< after earlier calls that may change what it reads
  changes,        ///< in the order of the calls: it may change what later ones read
};

}}}  // namespace fanout::v0::detail
