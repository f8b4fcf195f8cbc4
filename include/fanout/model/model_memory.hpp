// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 {

// Checks in which memory the arrays of a model are.

namespace detail {

/// Throws DeviceMismatch for the first array that is in another memory, and names its place.
struct CheckModelMemory {
  const MemorySpace& space;
  const DeviceId& device;

  template <class X>
  void operator()(const X& array, const LeafPath& path) const {
    if constexpr (requires { array.space(); }) {
      if (array.space() == space) return;
      throw DeviceMismatch(
          explain({.what = Text() << "the model must have its parameters and buffers on device " << device
                                  << " but found one of them on device " << array.space().owner,
                   .where = to_string(path),
                   .expected = to_string(space),
                   .found = to_string(array.space()),
                   .advice = "copy it there, or give the model a to(device)"}));
    }
  }
};

/// Counts the arrays in this memory, and those elsewhere.
struct CountArrays {
  const MemorySpace& space;
  std::size_t here = 0;
  std::size_t elsewhere = 0;

  template <class X>
  void operator()(const X& array, const LeafPath&) {
    if constexpr (requires { array.space(); }) ++(array.space() == space ? here : elsewhere);
  }
};
/// True if the model shows arrays, and all of them are in this memory.
template <class M>
bool lies_in(const M& model, const MemorySpace& space) {
  CountArrays arrays{space};
  visit_arrays(model, LeafPath("model"), arrays);
  return arrays.here != 0 && arrays.elsewhere == 0;
}

/// Throws DeviceMismatch if an array that the model shows is in a memory that cannot be copied to this one.
template <class M>
void check_model_can_move(const M& model, const backend::Memory& memory, const DeviceId& device) {
  visit_arrays(model, LeafPath("model"), [&](const auto& array, const LeafPath& path) {
    if constexpr (requires { array.space(); }) {
      if (!backend::can_transfer(memory, array.space())) CheckModelMemory{memory.space, device}(array, path);
    }
  });
}

/// Throws DeviceMismatch if an array that the model shows is in another memory than the device's.
template <class M>
void check_model_memory(const M& model, const MemorySpace& space, const DeviceId& device) {
  if constexpr (HasArrayLeaf<M>) visit_arrays(model, LeafPath("model"), CheckModelMemory{space, device});
}

}  // namespace detail
}}  // namespace fanout::v0
