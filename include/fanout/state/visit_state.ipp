// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/visit_state.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void NameStep::add(std::string_view step) const {
  if (step.empty()) {
    // Nothing would tell it from the names of the things around it.
    throw InvalidArgument(explain({.what = "a value under an empty key cannot be saved or loaded",
                                   .where = name_.empty() ? std::string(single_name) : name_,
                                   .expected = "keys of at least one letter",
                                   .found = "\"\""}));
  }
  if (size_ != 0) name_ += '.';
  name_ += step;
}

}}}  // namespace fanout::v0::detail
