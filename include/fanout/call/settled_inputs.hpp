// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>

#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 {

// A device may still be computing the arguments or the model of a call: the device of the `forward` that makes the
// call, or one that the thread has entered. Other devices are not in order with that work, so the calling thread waits
// for it.

namespace detail {

/// Waits for the memory of each array outside of host memory; also inside of wrapped trees.
struct SettleArrays {
  template <class X>
  void operator()(const X& array, const LeafPath& path) const {
    if constexpr (requires { array.space(); }) {
      if (!(array.space() == host_memory)) wait_where(array.space());
    } else if constexpr (requires { visit_arrays(array.value, path, *this); }) {
      visit_arrays(array.value, path, *this);
    } else if constexpr (requires { array.plan(); }) {  // one tree for each shard
      for (const auto& tree : array) visit_arrays(tree, path, *this);
    }
  }

 private:
  static void wait_where(const MemorySpace& space) {
    const backend::Memory memory = backend::memory_of(space);
    if (memory.operations != nullptr) backend::wait_for(memory);
  }
};

/// Waits for the arguments of a call. The calling thread must call this. Costs one load if the process has no memory
/// but the host's.
template <class... Args>
void settle_inputs(const std::tuple<Args...>& arguments) {
  if (!knows_device_memory()) return;
  std::apply([](const auto&... x) { (visit_arrays(x, input_root, SettleArrays()), ...); }, arguments);
}

/// Waits for a model that the thread has made or changed, before the devices copy it. Also waits for the devices'
/// memories, since a model may hide its arrays.
template <class M, Device... Ds>
void settle_model(const M& model, const DeviceSet<Ds...>& devices) {
  if constexpr (DeviceSet<Ds...>::has_own_memories) {
    visit_arrays(model, LeafPath("model"), SettleArrays());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      devices.visit(i, [](const auto& device) { backend::wait_for(backend::Memory(device.memory())); });
    }
  }
}

}  // namespace detail
}}  // namespace fanout::v0
