// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <type_traits>

#include <fanout/context/context.hpp>
#include <fanout/device/launcher.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

// nvcc replaces lambdas that are marked for the GPU by types of its own. Traits cannot say if these are trivially
// copyable nor, if they are for the GPU alone, if they can be called.
#if defined(__CUDACC__) && defined(__CUDACC_EXTENDED_LAMBDA__)
template <class F>
inline constexpr bool is_extended_lambda = __nv_is_extended_device_lambda_closure_type(F) ||
                                           __nv_is_extended_host_device_lambda_closure_type(F);
#else
template <class F>
inline constexpr bool is_extended_lambda = false;
#endif

// Not std::invocable: with clang as the CUDA compiler, its functions cannot call what is for the GPU alone.
template <class F>
inline constexpr bool called_with_index = is_extended_lambda<F> || requires(const F& f) {
  f(std::size_t{});
};

}  // namespace detail

/// Calls `f(i)` for each i in [0, n) on the context's device, in any order and possibly at the same time. On host
/// devices it returns after the last call. On a GPU it returns at once: the calls run in order with the other work of
/// the stream, and the model's call waits for them.
///
/// The device gets a copy of `f`, so `f` holds views and numbers. The memory of these views must live until the device
/// has made the calls, as inputs, output() and empty() do. References to variables work on host devices only. In a .cu,
/// the call operator of `f` needs FANOUT_HOST_DEVICE. `f` may be a lambda with it (nvcc --extended-lambda), but not
/// inside a function that returns `auto`. Throws what `f` throws on host devices, and what the device reports.
template <Context C, class F>
void launch(C& ctx, std::size_t n, const F& f) {
  constexpr bool copied_as_bytes = std::is_trivially_copyable_v<F> || detail::is_extended_lambda<F>;
  constexpr bool called_with_index = detail::called_with_index<F>;
  static_assert(
      copied_as_bytes,
      "fanout: launch() copies its function to the device byte by byte; capture views and numbers, and no tensors, "
      "vectors, tuples or dicts");
  static_assert(called_with_index,
                "fanout: launch() calls f(i) for each index: give f a const call operator that takes a std::size_t");
  if constexpr (copied_as_bytes && called_with_index) {
    backend::Launcher<std::remove_cvref_t<decltype(ctx.device())>>::launch(ctx.device(), n, f);
  }
}

}}  // namespace fanout::v0
