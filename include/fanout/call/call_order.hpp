// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a call has to do with the calls before and after it on the same replica.
enum class CallOrder {
  any,            ///< nothing: it reads what only update() changes
  after_changes,  ///< it reads what earlier calls may have changed
  changes,        ///< it may change what later calls read
};

}}}  // namespace fanout::v0::detail
