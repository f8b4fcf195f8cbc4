// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/loaded_tree.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void StateStructure::refuse_depth(const std::string& name) const {
  const std::string most = std::to_string(most_depth);
  throw StateMismatch({.texts = {"more than " + most + " levels in a name: " + name.substr(0, 60) + "..."},
                       .advice = "load<T>() makes no deeper trees: make the tree, and load() into it."},
                      file_.path());
}

std::size_t StateStructure::elements_of(std::string& name) const {
  for (std::size_t count = 0;; ++count) {
    const NameStep step(name);
    step.add(std::to_string(count));
    if (!has_tree(name)) return count;
  }
}

}}}  // namespace fanout::v0::detail
