// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/base/error.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

template <class X>
consteval bool can_leave_device();
template <class... Child, class... Step>
consteval bool all_can_leave_device(ChildTypes<ChildType<Child, Step>...>) {
  return (can_leave_device<Child>() && ...);
}

template <class X>
consteval bool has_rows_to_send();
template <class... Child, class... Step>
consteval bool any_has_rows_to_send(ChildTypes<ChildType<Child, Step>...>) {
  return (has_rows_to_send<Child>() || ...);
}

/// True for tuples, dicts, structs and arrays.
template <class X>
inline constexpr bool has_fixed_children =
    !ArrayLeaf<X> && (child_kind<X> == ChildKind::fixed || child_kind<X> == ChildKind::array);
template <class X>
inline constexpr bool is_output = false;
template <class T, std::size_t R>
inline constexpr bool is_output<Output<T, R>> = true;
template <class X>
inline constexpr bool has_rule = false;
template <class Rule, class X>
inline constexpr bool has_rule<WithRule<Rule, X>> = true;

/// True for a result of a shard in which all memory of the device can be found and replaced: outputs, tensors and
/// numbers, also in tuples, dicts, structs and
/// arrays, and under rules.
template <class X>
consteval bool can_leave_device() {
  if constexpr (is_output<X> || is_tensor<X> || Scalar<X>) {
    return true;
  } else if constexpr (has_rule<X>) {
    return can_leave_device<decltype(X::value)>();
  } else if constexpr (owns_elements<X>) {
    return Scalar<typename X::value_type>;
  } else if constexpr (has_fixed_children<X>) {
    return all_can_leave_device(child_types_t<X>());
  } else {
    return false;
  }
}

/// True for outputs whose rows are concatenated, alone or in tuples, dicts, structs and arrays.
template <class X>
consteval bool has_rows_to_send() {
  if constexpr (is_output<X>) {
    return true;
  } else if constexpr (!has_rule<X> && has_fixed_children<X>) {
    return any_has_rows_to_send(child_types_t<X>());
  } else {
    return false;
  }
}

/// Moves the result of a shard from the memory of its device to that of the call's results, and releases the shard's
/// memory. Outputs become windows of the buffers that all shards share. Borrows all that it is made of.
class ResultMover {
 public:
  ResultMover(CallFrame& call, const RowRange& rows, Scratch& scratch) noexcept
      : call_(call), rows_(rows), scratch_(scratch) {}

  /// Moves all of a result that can_leave_device(), so that the device has room for the next shard. Throws OutOfMemory,
  /// and what backend::transfer() throws.
  template <class X>
  void move(X& result) {
    visit<true>(result, [this](auto& array, auto) { this->move_array(array); });
  }

  /// Begins to copy the rows of outputs, in order with the work of the shard's device. That device's completion then
  /// stands for the copies, too. So the devices copy at the same time, and none waits for the caller. What is not sent
  /// is copied when all shards have ended. Throws what MemoryOperations::send throws.
  template <class X>
  void send(X& result) {
    visit<true>(result, [this](auto& array, auto concatenated) {
      if constexpr (is_output<std::remove_cvref_t<decltype(array)>>) {
        if (scratch_.has(array.buffer()) && !(concatenated && this->send_output(array))) all_moved_ = false;
      }
    });
  }

  /// Releases the scratch of the shard, unless results are still there. Call move() first.
  void release() noexcept {
    if (all_moved_) scratch_.release();
  }

  /// Releases the shard's memory in this space, in order with the device's work, unless something of the result may
  /// still be there. The result is an X that was sent.
  template <class X>
  void release_memory_in(const MemorySpace& space) noexcept {
    if (can_leave_device<X>() && all_moved_) scratch_.release_memory_in(space);
  }

 private:
  /// Calls `f(array, concatenated)` for each output and tensor in tuples, dicts, structs and arrays, and under
  /// rules.
  /// `concatenated` is false under a rule.
  template <bool Concatenated, class X, class F>
  static void visit(X& part, const F& f) {
    if constexpr (is_output<X> || is_tensor<X>) {
      f(part, std::bool_constant<Concatenated>());
    } else if constexpr (has_rule<X>) {
      visit<false>(part.value, f);
    } else if constexpr (has_fixed_children<X>) {
      visit_children(part, LeafPath("result"),
                     [&f](auto& child, const LeafPath&, auto) { visit<Concatenated>(child, f); });
    }
  }

  template <class T, std::size_t R>
  void move_array(Output<T, R>& output) {
    if (!scratch_.has(output.buffer())) return;
    const bool moved = move_to_shared_buffer(output, [&](std::byte* first, std::size_t bytes) {
      backend::transfer(call_.target, first, output.space(), output.data(), bytes);
    });
    if (!moved) all_moved_ = false;
  }

  template <class T, std::size_t R>
  void move_array(Tensor<T, R>& tensor) {
    const backend::Memory& target = call_.target;
    if (tensor.space() == target.space || tensor.space() == host_memory) return;
    auto moved = Tensor<T, R>::uninitialized(tensor.extents(), target);
    backend::transfer(target, moved.data(), tensor.space(), tensor.data(), tensor.size() * sizeof(T));
    tensor = std::move(moved);
  }

  /// Returns false if it stays where it is.
  template <class T, std::size_t R>
  bool send_output(Output<T, R>& output) {
    const MemorySpace& target = call_.target.space;
    const MemorySpace from = output.space();
    const backend::MemoryOperations& operations = *output.buffer().memory().operations;
    const bool is_near = target == host_memory || target.owner.kind == from.owner.kind;
    if (operations.can_send == nullptr || !is_near || target == from ||
        !operations.can_send(target, from, output.data(), output.size() * sizeof(T))) {
      return false;
    }
    try {
      return move_to_shared_buffer(output, [&](std::byte* first, std::size_t bytes) {
        operations.send(target, first, from, output.data(), bytes);
      });
    } catch (const OutOfMemory&) {
      return false;  // This is no error of the shard: the call throws it when it gathers.
    }
  }

  /// Copies the rows of a shard's own output by `copy(first, bytes)`, to where they belong in the buffer that all
  /// shards share. The output becomes a window of that buffer. Returns false, and changes nothing, if shards asked for
  /// outputs in different orders, so that the buffer has other rows. Throws OutOfMemory, and what `copy` throws.
  template <class T, std::size_t R, class Copy>
  bool move_to_shared_buffer(Output<T, R>& output, const Copy& copy) {
    const std::size_t row_bytes = output.buffer().row_bytes();
    const auto& shared = call_.outputs.get(output.buffer().number(), call_.plan.rows(), row_bytes);
    if (shared.row_bytes != row_bytes) return false;
    std::byte* const first = shared.first + rows_.first * row_bytes;
    copy(first, output.size() * sizeof(T));
    output = Output<T, R>(*shared.buffer, first, call_.target.space, rows_, output.extents());
    return true;
  }

  CallFrame& call_;
  const RowRange rows_;
  Scratch& scratch_;
  bool all_moved_ = true;
};

}}}  // namespace fanout::v0::detail
