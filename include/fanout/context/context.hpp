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

/// What a `forward` may ask for: `forward(fanout::Context auto& ctx, ...)`. A context stands for one run of one shard;
/// it is used by the thread that runs it and not kept.
///
/// 1. `device()` is the device that runs the shard.
/// 2. `rank()` is the shard's position in the plan and `size()` the number of shards: 0 <= rank < size.
/// 3. `rows()` are the shard's rows in the whole batch; empty if nothing was split.
/// 4. `random(i)` gives the random numbers of the shard's i-th row: they depend on the model's seed, the number of the
///    call and the row's place in the whole batch, not on the devices. `i` counts from the shard's first row; of a row of
///    the whole batch, as a RowRange has them, it is `rows().local(row)`. A row that the shard does not have is an
///    InvalidArgument, but for row 0 of a shard without rows: a kernel may be given `random(0)` in any case.
/// 5. `stop_requested()` is true from the deadline of the call on, or of one that it is made from inside of: the call
///    still waits for `forward`, but what it returns comes too late. Without a deadline false, for one comparison.
/// 6. `claim_output(row_bytes)` gives a buffer in the device's memory, the rows in it that are this shard's, and where
///    their bytes begin; see output().
/// 7. `claim_scratch(bytes)` gives memory of the device that lives until the results are gathered; see empty().
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

/// Makes the mistake of reading what nobody has set show: bytes of host memory become NaNs, or 0xCD each if the elements
/// are no floating numbers.
template <class T>
void fill_unset(T* data, std::size_t size) noexcept {
  constexpr bool has_nan =
      std::is_floating_point_v<typename real_of<T>::type> || NarrowFloat<typename real_of<T>::type>;
  if (size != 0) std::memset(static_cast<void*>(data), has_nan ? 0xFF : 0xCD, size * sizeof(T));
}

/// As a condition that names its arguments: compilers print it where they are refused.
template <class... Given>
inline constexpr bool are_context_and_extents = false;

template <class Result, class... Given>
[[noreturn]] Result refuse_array() {
  static_assert(are_context_and_extents<Given...>,
                "fanout: output<T>(ctx, extents...) and empty<T>(ctx, extents...) take the context of forward and then "
                "integers, and were given something else (the types stand in this diagnostic); take the context as "
                "`forward(fanout::Context auto& ctx, ...)`");
  throw 0;
}

}  // namespace detail

/// This shard's rows of a result that all shards fill together, [rows, trailing...]. `trailing` are the extents behind
/// the rows, which come by themselves: output<T>(ctx) has one element for each row, output<T>(ctx, 3) three. Shards that
/// ask for their outputs in the same order and return them at the same places are gathered without a copy. Lives until
/// the results are gathered. Throws ShapeMismatch for extents that cannot be, and OutOfMemory.
///
/// The elements are not set, so write each of them before it is read: `y[i] += x[i]` adds to what an earlier call left.
/// With FANOUT_CHECKS those in host memory are NaN, or 0xCD bytes, except in a destination of the caller's.
template <class T, Context C, std::integral... I>
Output<T, 1 + sizeof...(I)> output(C& ctx, I... trailing) {
  const auto extents = checked_extents(sizeof(T), ctx.rows().size(), trailing...);
  const auto claim = ctx.claim_output(extents.row_size() * sizeof(T));
  const Output<T, 1 + sizeof...(I)> output(claim.buffer, claim.first, ctx.device().memory().space, claim.rows, extents);
  if constexpr (FANOUT_CHECKS != 0) {
    // What the caller has may be the rows of an inout(), which forward reads.
    const backend::Memory& memory = claim.buffer.memory();
    if (memory.space == host_memory && memory.operations != &detail::borrowed_host_operations) {
      detail::fill_unset(output.data(), output.size());
    }
  }
  return output;
}

/// Scratch on the shard's device, [extents...]: all extents are given, none is the shard's rows by itself as in output().
/// Lives until the results are gathered. Throws ShapeMismatch and OutOfMemory.
///
/// The elements are not set; see output().
template <class T, Context C, std::integral... I>
View<T, sizeof...(I)> empty(C& ctx, I... extents) {
  const auto shape = checked_extents(sizeof(T), extents...);
  const backend::Memory memory = ctx.device().memory();
  T* const data = static_cast<T*>(ctx.claim_scratch(shape.size() * sizeof(T)));
  if constexpr (FANOUT_CHECKS != 0) {
    if (memory.space == host_memory) detail::fill_unset(data, shape.size());
  }
  return {data, shape, memory.space};
}

/// Refuse what is no context and no extents.
template <class T, class... Given>
Output<T, 1 + sizeof...(Given)> output(const Given&...) {
  return detail::refuse_array<Output<T, 1 + sizeof...(Given)>, Given...>();
}
template <class T, class... Given>
View<T, 1 + sizeof...(Given)> empty(const Given&...) {
  return detail::refuse_array<View<T, 1 + sizeof...(Given)>, Given...>();
}

}}  // namespace fanout::v0
