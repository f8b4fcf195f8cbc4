// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <climits>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// While this lives, the kernel takes new pages of this thread from a NUMA node if it has free ones. Does nothing if
/// the node is negative, if the thread has a memory policy already (`numactl`), or if the kernel refuses, as in many
/// containers: the pages may lie anywhere.
class PreferredNode {
 public:
  explicit PreferredNode(int node) noexcept {
    if (node < 0 || node >= most_nodes) return;
    int policy = MPOL_DEFAULT;
    if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, nullptr, 0UL) != 0 || policy != MPOL_DEFAULT) return;
    unsigned long nodes[most_nodes / bits] = {};
    nodes[node / bits] = 1UL << (node % bits);
    // The kernel reads one bit less than it is told.
    set_ = ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, static_cast<unsigned long>(most_nodes) + 1) == 0;
  }
  PreferredNode(const PreferredNode&) = delete;
  PreferredNode& operator=(const PreferredNode&) = delete;
  ~PreferredNode() {
    if (set_) ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL);
  }

 private:
  static constexpr int most_nodes = 1024;  // the kernel's own limit
  static constexpr int bits = sizeof(unsigned long) * CHAR_BIT;

  bool set_ = false;
};

}}}  // namespace fanout::v0::cuda::detail
