// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/array/output.hpp>
#include <fanout/base/error.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/replica/early_release.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

template <class X>
consteval bool has_rows_to_send();
template <class... Child, class... Step>
consteval bool any_has_rows_to_send(ChildTypes<ChildType<Child, Step>...>) {
  return (has_rows_to_send<Child>() || ...);
}

/// True for outputs whose rows are concatenated, alone or in tuples, dicts and structs.
template <class X>
consteval bool has_rows_to_send() {
  if constexpr (is_output<X>) {
    return true;
  } else if constexpr (!has_rule<X> && !ArrayLeaf<X> && child_kind<X> == ChildKind::fixed) {
    return any_has_rows_to_send(child_types_t<X>());
  } else {
    return false;
  }
}

/// Begins to copy the rows of a shard's outputs to the memory of the call's results, in order with the work of the
/// shard's device. That device's completion then stands for the copies, too. So the devices copy at the same time, and
/// none waits for the caller. The outputs become windows of the buffers that all shards share. What is not sent is
/// copied when all shards have ended. Borrows all that it is made of.
class OutputSender {
 public:
  OutputSender(CallState& call, const RowRange& rows, Scratch& scratch) noexcept
      : call_(call), rows_(rows), scratch_(scratch) {}

  /// Throws what MemoryOperations::send throws.
  template <class X>
  void send(X& result) {
    if constexpr (is_output<X>) {
      if (!(result.space() == call_.settings.target.space) && scratch_.has(result.buffer())) send_output(result);
    } else if constexpr (has_rows_to_send<X>()) {
      visit_children(result, LeafPath("result"), [this](auto& child, const LeafPath&, auto) { this->send(child); });
    }
  }

 private:
  template <class T, std::size_t R>
  void send_output(Output<T, R>& output) {
    const MemorySpace& target = call_.settings.target.space;
    const auto send = output.buffer().memory().operations->send;
    if (send == nullptr || !(target.owner.kind == output.space().owner.kind)) return;
    try {
      move_to_shared_buffer(output, call_, rows_, [&](std::byte* first, std::size_t bytes) {
        return send(target, first, output.space(), output.data(), bytes);
      });
    } catch (const OutOfMemory&) {
      // There is no memory for the results. This is no error of the shard: the call throws it when it gathers.
    }
  }

  CallState& call_;
  const RowRange rows_;
  Scratch& scratch_;
};

}}}  // namespace fanout::v0::detail
