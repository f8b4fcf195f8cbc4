// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
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
inline constexpr bool is_output = false;
template <class T, std::size_t R>
inline constexpr bool is_output<Output<T, R>> = true;
template <class X>
inline constexpr bool is_tensor = false;
template <class T, std::size_t R>
inline constexpr bool is_tensor<Tensor<T, R>> = true;
template <class X>
inline constexpr bool has_rule = false;
template <class Rule, class X>
inline constexpr bool has_rule<WithRule<Rule, X>> = true;

/// Copies the rows of a shard's own output by `copy(first, bytes)`, to where they belong in the buffer that all shards
/// share. The output becomes a window of that buffer. Returns false, and changes nothing, if `copy` returns false, or
/// if shards asked for outputs in different orders, so that the buffer has other rows. Throws OutOfMemory, and what
/// `copy` throws.
template <class T, std::size_t R, class Copy>
bool move_to_shared_buffer(Output<T, R>& output, CallFrame& call, const RowRange& rows, const Copy& copy) {
  const std::size_t row_bytes = output.buffer().row_bytes();
  const auto& shared = call.outputs.get(output.buffer().number(), call.plan.rows(), row_bytes);
  if (shared.row_bytes != row_bytes) return false;
  std::byte* const first = shared.first + rows.first * row_bytes;
  if (!copy(first, output.size() * sizeof(T))) return false;
  output = Output<T, R>(*shared.buffer, first, call.target.space, rows, output.extents());
  return true;
}

/// True for a result of a shard in which all memory of the device can be found and replaced: outputs, tensors and
/// numbers, also in tuples, dicts and structs, and under rules.
template <class X>
consteval bool can_leave_device() {
  if constexpr (is_output<X> || is_tensor<X> || Scalar<X>) {
    return true;
  } else if constexpr (has_rule<X>) {
    return can_leave_device<decltype(X::value)>();
  } else if constexpr (owns_elements<X>) {
    return Scalar<typename X::value_type>;
  } else if constexpr (!ArrayLeaf<X> && child_kind<X> == ChildKind::fixed) {
    return all_can_leave_device(child_types_t<X>());
  } else {
    return false;
  }
}

/// Moves the result of a shard from the memory of its device to that of the call's results, so that the device has room
/// for the next shard. Outputs become windows of the buffers that all shards share. For results that
/// can_leave_device(). Borrows all that it is made of.
class EarlyRelease {
 public:
  EarlyRelease(CallFrame& call, const RowRange& rows, Scratch& scratch) noexcept
      : call_(call), rows_(rows), scratch_(scratch) {}

  /// Throws OutOfMemory, and what backend::transfer() throws.
  template <class X>
  void move(X& result) {
    if constexpr (is_output<X>) {
      if (scratch_.has(result.buffer())) move_output(result);
    } else if constexpr (is_tensor<X>) {
      move_tensor(result);
    } else if constexpr (has_rule<X>) {
      move(result.value);
    } else if constexpr (!Scalar<X> && !owns_elements<X>) {
      visit_children(result, LeafPath("result"), [this](auto& child, const LeafPath&, auto) { this->move(child); });
    }
  }

  /// Releases the scratch of the shard, unless results are still there.
  void release() noexcept {
    if (all_moved_) scratch_.release();
  }

 private:
  template <class T, std::size_t R>
  void move_output(Output<T, R>& output) {
    const auto copy = [&](std::byte* first, std::size_t bytes) {
      backend::transfer(call_.target, first, output.space(), output.data(), bytes);
      return true;
    };
    if (!move_to_shared_buffer(output, call_, rows_, copy)) all_moved_ = false;
  }

  template <class T, std::size_t R>
  void move_tensor(Tensor<T, R>& tensor) {
    const backend::Memory& target = call_.target;
    if (tensor.space() == target.space || tensor.space() == host_memory) return;
    auto moved = Tensor<T, R>::uninitialized(tensor.extents(), target);
    backend::transfer(target, moved.data(), tensor.space(), tensor.data(), tensor.size() * sizeof(T));
    tensor = std::move(moved);
  }

  CallFrame& call_;
  const RowRange rows_;
  Scratch& scratch_;
  bool all_moved_ = true;
};

}}}  // namespace fanout::v0::detail
