// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/memory/copy_into.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 {

/// Copies a value, with all its tensors in `memory`, whatever memories they are in now: `to(weights, Memory{})` for the
/// host. A View or an Output becomes a Tensor. Views inside of a larger value still borrow the original elements. Waits
/// until the copy is there. Throws OutOfMemory, and DeviceMismatch if fanout knows no transfer between the memories.
template <class X>
auto to(const X& value, const backend::Memory& memory) {
  if constexpr (detail::BorrowsArray<X>) {
    auto copy = Tensor<typename X::value_type, X::rank>::uninitialized(value.extents(), memory);
    backend::transfer(memory, copy.data(), value.space(), value.data(), copy.storage().bytes());
    backend::wait_for(memory);
    return copy;
  } else {
    backend::CopyInto into(memory);
    X copy(value);
    into.finish();
    backend::wait_for(memory);
    return copy;
  }
}

/// Copies to a device's memory: `to(weights, device)`. Waits, and throws, as above.
template <class X, class D>
  requires requires(const D& device) { backend::Memory(device.memory()); }
auto to(const X& value, const D& device) { return fanout::to(value, backend::Memory(device.memory())); }

/// Copies to host memory. Waits, and throws, as above.
template <class X>
auto to_host(const X& value) {
  return fanout::to(value, backend::Memory{});
}

/// Copies all elements of one array into another of the same extents, and waits until they are there:
/// `copy(x, result.rows({0, 10}))`. Both may be in any memory. `into` is a Tensor or a writable View. The arrays must
/// not overlap. Throws ShapeMismatch, and DeviceMismatch if fanout knows no transfer between the memories.
template <detail::ContiguousArray From, class Into>
  requires std::convertible_to<Into&, View<typename From::value_type, From::rank>>
void copy(const From& from, Into&& into) {
  const View<typename From::value_type, From::rank> to = into;
  if (!(from.extents() == to.extents())) {
    throw ShapeMismatch(explain({.what = "an array was copied to one of other extents",
                                 .where = "copy",
                                 .expected = to_string(to.extents()),
                                 .found = to_string(from.extents())}));
  }
  const backend::Memory memory = backend::memory_of(to.space());
  if (memory.operations == nullptr) detail::refuse_transfer(to.space(), from.space());
  backend::transfer(memory, to.data(), from.space(), from.data(), from.size() * sizeof(typename From::value_type));
  backend::wait_for(memory);
}

}}  // namespace fanout::v0
