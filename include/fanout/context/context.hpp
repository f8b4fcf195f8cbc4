// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <fanout/array/output.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/checks.hpp>
#include <fanout/context/random_stream.hpp>
#include <fanout/device/device.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/tree/number.hpp>

namespace fanout { inline namespace v0 {

/// The first parameter of a `forward` that wants one: `forward(fanout::Context auto& ctx, ...)`. A context belongs to
/// one run of one shard. Only the thread that runs the shard may use it, and only until `forward` returns.
///
/// 1. `device()` is the device that runs the shard.
/// 2. `rank()` is the shard's position in the plan and `size()` the number of shards: 0 <= rank < size.
/// 3. `rows()` are the shard's rows [first, last) in the whole batch; empty if nothing was split.
/// 4. `random(i)` is the random stream of the shard's i-th row. It depends on the model's seed, the number of the call
///    and the row in the whole batch, not on the devices. `i` counts from the shard's first row. For a row of the whole
///    batch, pass `rows().local(row)`. Throws InvalidArgument if the shard does not have row i. Row 0 is always
///    allowed, since kernels count from it.
/// 5. `stop_requested()` is true from the deadline of the call on, or from that of a call around it. The call still
///    waits for `forward`. Without a deadline it is false, at the cost of one comparison.
/// 6. `claim_output(row_bytes)` returns a buffer in the device's memory, the shard's rows in it, and the address of the
///    first one; see output(). Throws OutOfMemory.
/// 7. `claim_scratch(bytes)` returns device memory that lives as long as that of empty(). Throws OutOfMemory.
template <class C>
concept Context = requires(C& ctx, std::size_t n) {
  requires Device<std::remove_cvref_t<decltype(ctx.device())>>;
  { ctx.rank() } -> std::same_as<std::size_t>;
  { ctx.size() } -> std::same_as<std::size_t>;
  { ctx.rows() } -> std::same_as<RowRange>;
  { ctx.random(n) } -> std::same_as<RandomStream>;
  { ctx.stop_requested() } -> std::same_as<bool>;
  { ctx.claim_output(n).buffer } -> std::convertible_to<detail::OutputBuffer&>;
  { ctx.claim_output(n).rows } -> std::convertible_to<RowRange>;
  { ctx.claim_output(n).first } -> std::convertible_to<std::byte*>;
  { ctx.claim_scratch(n) } -> std::same_as<void*>;
};

namespace detail {

/// Makes reads of unset elements visible: fills host memory with NaN, or with 0xCD bytes if the elements are not
/// floating-point numbers.
template <class T>
void fill_unset(T* data, std::size_t size) noexcept {
  constexpr bool has_nan =
      std::is_floating_point_v<typename real_of<T>::type> || NarrowFloat<typename real_of<T>::type>;
  if (size != 0) std::memset(static_cast<void*>(data), has_nan ? 0xFF : 0xCD, size * sizeof(T));
}

/// A condition with its arguments in its name: compilers print it in the error.
template <class... Given>
inline constexpr bool are_context_and_extents = false;

template <class Result, class... Given>
[[noreturn]] Result refuse_array() {
  static_assert(are_context_and_extents<Given...>,
                "fanout: output<T>(ctx, extents...) and empty<T>(ctx, extents...) take the context of forward, then "
                "integers, but other types were passed (this diagnostic shows them); declare the context as "
                "`forward(fanout::Context auto& ctx, ...)`");
  throw 0;
}

}  // namespace detail

/// This shard's rows of a result that all shards fill together: [rows, trailing...]. `trailing` are the extents behind
/// the rows: output<T>(ctx) has one element per row, output<T>(ctx, 3) has three. If all shards ask for their outputs
/// in the same order and return them at the same places, gathering copies nothing. Lives until the results are
/// gathered. Throws ShapeMismatch for invalid extents, and OutOfMemory.
///
/// The elements are unset. Write each one before you read it: `y[i] += x[i]` adds to garbage. With FANOUT_CHECKS, host
/// memory is filled with NaN, or 0xCD bytes, unless it is memory of the caller's own.
template <class T, Context C, std::integral... I>
Output<T, 1 + sizeof...(I)> output(C& ctx, I... trailing) {
  const auto extents = detail::checked_extents(sizeof(T), ctx.rows().size(), trailing...);
  const auto claim = ctx.claim_output(extents.row_size() * sizeof(T));
  const Output<T, 1 + sizeof...(I)> output(claim.buffer, claim.first, ctx.device().memory().space, claim.rows, extents);
  if constexpr (FANOUT_CHECKS != 0) {
    // The caller's memory may be the rows of an inout(), which forward reads.
    const backend::Memory& memory = claim.buffer.memory();
    if (memory.space == host_memory && !detail::is_borrowed(memory)) {
      detail::fill_unset(output.data(), output.size());
    }
  }
  return output;
}

/// Scratch memory on the shard's device: [extents...]. Unlike in output(), all extents are given. Lives until the
/// device has done the shard's work, and until the result is gathered if that shows it. The elements are unset; see
/// output(). Throws ShapeMismatch and OutOfMemory.
template <class T, Context C, std::integral... I>
View<T, sizeof...(I)> empty(C& ctx, I... extents) {
  const auto shape = detail::checked_extents(sizeof(T), extents...);
  const backend::Memory memory = ctx.device().memory();
  T* const data = static_cast<T*>(ctx.claim_scratch(shape.size() * sizeof(T)));
  if constexpr (FANOUT_CHECKS != 0) {
    if (memory.space == host_memory) detail::fill_unset(data, shape.size());
  }
  return {data, shape, memory.space};
}

/// Refuse arguments that are not a context and extents, with a message.
template <class T, class... Given>
Output<T, 1 + sizeof...(Given)> output(const Given&...) {
  return detail::refuse_array<Output<T, 1 + sizeof...(Given)>, Given...>();
}
template <class T, class... Given>
View<T, 1 + sizeof...(Given)> empty(const Given&...) {
  return detail::refuse_array<View<T, 1 + sizeof...(Given)>, Given...>();
}

}}  // namespace fanout::v0
