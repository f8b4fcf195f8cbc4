// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <tuple>

#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/parallel/call_chain.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout::inline v0 {

// Arguments of a call from inside a `forward`, which that forward's device may still be computing.

namespace detail {

/// Waits for the memory of each array that is not the host's; of wrapped trees too.
struct SettleArrays {
  template <class X>
  void operator()(const X& array, const LeafPath& path) const {
    if constexpr (requires { array.space(); }) {
      if (!(array.space() == host_memory)) wait_where(array.space());
    } else if constexpr (requires { visit_arrays(array.value, path, *this); }) {
      visit_arrays(array.value, path, *this);
    }
  }

 private:
  static void wait_where(const MemorySpace& space) {
    const Memory memory = memory_of(space);
    if (memory.operations != nullptr) wait_for(memory);
  }
};

/// Another device than the one that computes an argument is in no order with it, so it must be there before the call.
/// Called by the thread that makes the call; costs a look where that is inside of no other.
template <class... Args>
void settle_inputs(const std::tuple<Args...>& arguments) {
  if (current_link() == nullptr) return;
  std::apply([](const auto&... x) { (visit_arrays(x, input_root, SettleArrays()), ...); }, arguments);
}

}  // namespace detail
}  // namespace fanout::inline v0
