// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/runtime/preferred_node.hpp>

#include <doctest/doctest.h>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fanout/cuda/runtime/page_locked.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/stream.hpp>

#include "cuda/gpus.hpp"
#include "support/skip.hpp"

namespace cuda = fanout::cuda;
using cuda::detail::PreferredNode;

namespace {

/// This thread's memory policy, -1 if the kernel does not tell.
int policy() {
  int policy = -1;
  return ::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, nullptr, 0UL) == 0 ? policy : -1;
}

bool set_policy(int policy, unsigned long nodes) {
  return ::syscall(SYS_set_mempolicy, policy, nodes == 0 ? nullptr : &nodes, nodes == 0 ? 0UL : 64UL) == 0;
}

/// Skips the test if this thread cannot prefer node 0: the kernel has no nodes, the container forbids it, or the thread
/// has a policy already.
bool can_prefer_node_0() {
  const bool can = policy() == MPOL_DEFAULT && set_policy(MPOL_PREFERRED, 1) && set_policy(MPOL_DEFAULT, 0);
  if (!can) fanout_test::skip("the kernel does not let this thread prefer a NUMA node");
  return can;
}

}  // namespace

TEST_CASE("a thread prefers a node until the end of the scope") {
  if (!can_prefer_node_0()) return;
  {
    const PreferredNode preferred(0);
    CHECK(policy() == MPOL_PREFERRED);
    {
      const PreferredNode inner(0);  // the thread has a policy now
    }
    CHECK(policy() == MPOL_PREFERRED);
  }
  CHECK(policy() == MPOL_DEFAULT);
}

TEST_CASE("nodes that are not there are not preferred, and that is no error") {
  const int before = policy();
  for (const int node : {-1, -1000, 63, 64, 1023, 1024, 1 << 20}) {
    CAPTURE(node);
    const PreferredNode preferred(node);
    CHECK(policy() == before);
  }
  CHECK(policy() == before);
}

TEST_CASE("a memory policy that the thread has is left alone") {
  if (!can_prefer_node_0()) return;
  for (const int own : {MPOL_BIND, MPOL_INTERLEAVE}) {
    CAPTURE(own);
    REQUIRE(set_policy(own, 1));
    {
      const PreferredNode preferred(0);
      CHECK(policy() == own);
    }
    CHECK(policy() == own);
  }
  CHECK(set_policy(MPOL_DEFAULT, 0));
}

TEST_CASE("page-locked memory is allocated on its node, and the thread's policy is restored, also if that fails") {
  if (!fanout_test::has_stand_in(1) || !can_prefer_node_0()) return;
  const fanout_test::Watched watched;
  cuda::detail::GpuState& gpu = cuda::detail::gpu_at(0);
  void* near = cuda::detail::allocate_page_locked(1000, gpu, 0);
  CHECK(stand_in_node_of(near) == 0);
  CHECK(policy() == MPOL_DEFAULT);
  void* anywhere = cuda::detail::allocate_page_locked(1000, gpu);
  CHECK(stand_in_node_of(anywhere) == -1);
  cuda::detail::release_page_locked(near, gpu);
  cuda::detail::release_page_locked(anywhere, gpu);
  for (const cudaError_t failure : {cudaErrorMemoryAllocation, cudaErrorInvalidValue}) {
    stand_in_fail("cudaHostAlloc", 1, 1, failure);
    CHECK_THROWS(cuda::detail::allocate_page_locked(1000, gpu, 0));
    CHECK(policy() == MPOL_DEFAULT);
  }
}

TEST_CASE("staging memory is on the node that it was made for") {
  if (!fanout_test::has_stand_in(1) || !can_prefer_node_0()) return;
  const fanout_test::Watched watched;
  // Never destroyed, like the streams of devices.
  static auto& near = *new cuda::detail::Staging(cuda::detail::gpu_at(0), 0);
  static auto& anywhere = *new cuda::detail::Staging(cuda::detail::gpu_at(0));
  for (const int node : {0, -1}) {
    const cuda::Stream stream(0);
    cuda::detail::Staging::Room room = (node == 0 ? near : anywhere).take(stream, 1);
    CHECK(stand_in_node_of(room.data()) == node);
    room.done();
    stream.synchronize();
  }
}
