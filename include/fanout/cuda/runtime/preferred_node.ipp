// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/preferred_node.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

PreferredNode::PreferredNode(int node) noexcept {
  if (node < 0 || node >= most_nodes) return;
  int policy = MPOL_DEFAULT;
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, nullptr, 0UL) != 0 || policy != MPOL_DEFAULT) return;
  unsigned long nodes[most_nodes / bits] = {};
  nodes[node / bits] = 1UL << (node % bits);
  // The kernel reads one bit less than it is told.
  set_ = ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, static_cast<unsigned long>(most_nodes) + 1) == 0;
}

}}}  // namespace fanout::v0::cuda::detail
