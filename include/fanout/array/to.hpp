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

/// The same for a device's memory: `to(weights, device)`.
template <class X, class D>
  requires requires(const D& device) { backend::Memory(device.memory()); }
auto to(const X& value, const D& device) { return fanout::to(value, backend::Memory(device.memory())); }

/// The same for the host's memory.
template <class X>
auto to_host(const X& value) {
  return fanout::to(value, backend::Memory{});
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
  const backend::Memory memory = backend::memory_of(to.space());
  if (memory.operations == nullptr) detail::refuse_transfer(to.space(), from.space());
  backend::transfer(memory, to.data(), from.space(), from.data(), from.size() * sizeof(typename From::value_type));
  backend::wait_for(memory);
}

}}  // namespace fanout::v0
