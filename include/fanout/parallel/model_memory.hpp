// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout::inline v0 {

// Where the arrays of a model lie.

namespace detail {

/// Throws DeviceMismatch for the first array that is not in this memory, with its place.
struct CheckModelMemory {
  const MemorySpace& space;
  const DeviceId& device;

  template <class X>
  void operator()(const X& array, const LeafPath& path) const {
    if constexpr (requires { array.space(); }) {
      if (array.space() == space) return;
      throw DeviceMismatch(
          explain({.what = "the model must have its parameters and buffers on device " + to_string(device) +
                           " but found one of them on device " + to_string(array.space().owner),
                   .where = to_string(path),
                   .expected = to_string(space),
                   .found = to_string(array.space()),
                   .advice = "copy it there, or give the model a to(device)"}));
    }
  }
};

/// Throws DeviceMismatch for a model that shows arrays which lie in another memory than this device works in.
template <class M>
void check_model_memory(const M& model, const MemorySpace& space, const DeviceId& device) {
  if constexpr (HasArrayLeaf<M>) visit_arrays(model, LeafPath("model"), CheckModelMemory{space, device});
}

}  // namespace detail
}  // namespace fanout::inline v0
