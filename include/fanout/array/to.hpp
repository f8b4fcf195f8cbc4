// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <type_traits>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/memory/copy_into.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 {

/// A copy of any value whose arrays lie in this memory, wherever they lie now: `to(weights, Memory{})` for the host's.
/// Of a View or an Output a Tensor; views inside of the value go on showing what they show. Waits until the copy is
/// there. Throws DeviceMismatch where no way between the memories is known, and OutOfMemory.
template <class X>
auto to(const X& value, const Memory& memory) {
  if constexpr (detail::BorrowsArray<X>) {
    auto copy = Tensor<typename X::value_type, X::rank>::uninitialized(value.extents(), memory);
    transfer(memory, copy.data(), value.space(), value.data(), copy.storage().bytes());
    wait_for(memory);
    return copy;
  } else {
    CopyInto into(memory);
    X copy(value);
    into.finish();
    wait_for(memory);
    return copy;
  }
}

/// The same for a device's memory: `to(weights, device)`.
template <class X, class D>
  requires requires(const D& device) { Memory(device.memory()); }
auto to(const X& value, const D& device) { return fanout::to(value, Memory(device.memory())); }

/// The same for the host's memory.
template <class X>
auto to_host(const X& value) {
  return fanout::to(value, Memory{});
}

/// Copies all elements of one array into another of the same extents, in whatever memories they lie, and waits until
/// they are there: `copy(x, result.rows({0, 10}))`. `into` is a Tensor or a View that writes. The arrays must not overlap.
/// Throws ShapeMismatch, and DeviceMismatch where no way is known.
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
  const Memory memory = memory_of(to.space());
  if (memory.operations == nullptr) detail::refuse_transfer(to.space(), from.space());
  transfer(memory, to.data(), from.space(), from.data(), from.size() * sizeof(typename From::value_type));
  wait_for(memory);
}

}}  // namespace fanout::v0
