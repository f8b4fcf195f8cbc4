// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/collective.hpp>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace backend {

std::string to_string(const Collective& call) {
  using Kind = Collective::Kind;
  detail::Text text;
  text << detail::name_of(call.kind);
  if (call.kind == Kind::barrier) return text;
  if (call.is_reduction()) text << "(" << detail::name_of(call.reduction) << ")";
  text << " of " << (call.leaves == 0 ? "no arrays" : call.type->name());
  for (std::size_t axis = 0; axis < call.extents.size(); ++axis) {
    text << (axis == 0 ? "[" : ", ") << call.extents[axis];
  }
  if (call.extents.size() != 0) text << "]";
  if (!call.leaf.empty()) text << " at " << call.leaf;
  if (call.leaves > 1) text << " (of " << call.leaves << " arrays)";
  if (call.direct) text << " by the devices";
  if (call.kind == Kind::broadcast || call.kind == Kind::recv) text << " from rank " << call.root;
  if (call.kind == Kind::reduce || call.kind == Kind::send) text << " to rank " << call.root;
  return text;
}

}}}  // namespace fanout::v0::backend
