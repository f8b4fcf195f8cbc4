// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/tree/children.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

/// Calls `f(array, path)` for each array leaf of the tree, in order, and for each part that splits itself. Does not
/// walk subtrees whose type holds no array, nor structs whose fields cannot be found. Of a variant, walks the tree that
/// it holds.
template <class X, class F>
void visit_arrays(const X& tree, const LeafPath& path, F&& f) {
  if constexpr (ArrayLeaf<X> || splits_itself<X>) {
    f(tree, path);
  } else if constexpr (HasArrayLeaf<X>) {
    detail::visit_children(tree, path,
                           [&f](const auto& child, const LeafPath& at, auto) { visit_arrays(child, at, f); });
  }
}

}}  // namespace fanout::v0
