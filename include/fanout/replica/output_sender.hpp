// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/array/output.hpp>
#include <fanout/base/error.hpp>
#include <fanout/call/call_frame.hpp>
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
/// copied when all shards have ended. After that, release_memory_in() can release the shard's memory. Borrows all that
/// it is made of.
class OutputSender {
 public:
  OutputSender(CallFrame& call, const RowRange& rows, Scratch& scratch) noexcept
      : call_(call), rows_(rows), scratch_(scratch) {}

  /// Throws what MemoryOperations::send throws.
  template <class X>
  void send(X& result) {
    send_part<true>(result);
  }

  /// Releases the shard's memory in this space, in order with the device's work, unless something of the result may
  /// still be there. The result must have been sent.
  template <class X>
  void release_memory_in(const MemorySpace& space) noexcept {
    if constexpr (can_leave_device<X>()) {
      if (all_sent_) scratch_.release_memory_in(space);
    }
  }

 private:
  template <bool Concatenated, class X>
  void send_part(X& part) {
    if constexpr (is_output<X>) {
      if (scratch_.has(part.buffer()) && !(Concatenated && send_output(part))) all_sent_ = false;
    } else if constexpr (has_rule<X>) {
      send_part<false>(part.value);
    } else if constexpr (!ArrayLeaf<X> && child_kind<X> == ChildKind::fixed) {
      visit_children(part, LeafPath("result"),
                     [this](auto& child, const LeafPath&, auto) { this->template send_part<Concatenated>(child); });
    }
  }

  /// Returns false if it stays where it is.
  template <class T, std::size_t R>
  bool send_output(Output<T, R>& output) {
    const MemorySpace& target = call_.target.space;
    const auto send = output.buffer().memory().operations->send;
    if (send == nullptr || target == output.space() || !(target.owner.kind == output.space().owner.kind)) return false;
    try {
      return move_to_shared_buffer(output, call_, rows_, [&](std::byte* first, std::size_t bytes) {
        return send(target, first, output.space(), output.data(), bytes);
      });
    } catch (const OutOfMemory&) {
      return false;  // This is no error of the shard: the call throws it when it gathers.
    }
  }

  CallFrame& call_;
  const RowRange rows_;
  Scratch& scratch_;
  bool all_sent_ = true;
};

}}}  // namespace fanout::v0::detail
