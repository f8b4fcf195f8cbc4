// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <climits>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fanout/base/requirements.hpp>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// While this lives, the kernel takes new pages of this thread from a NUMA node if it has free ones. Does nothing if
/// the node is negative, if the thread has a memory policy already (`numactl`), or if the kernel refuses, as in many
/// containers: the pages may lie anywhere.
class PreferredNode {
 public:
  FANOUT_INLINE explicit PreferredNode(int node) noexcept;
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

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/preferred_node.ipp>
#endif
