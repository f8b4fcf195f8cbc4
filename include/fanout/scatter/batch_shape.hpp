// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A number for the shape of the arguments of a call: equal for batches that differ only in their rows. It is a hash
/// (FNV-1a) of the extents of all arrays but the first ones, and of the sizes of their elements.
template <class... Args>
std::uint64_t batch_shape(const std::tuple<Args...>& arguments) {
  std::uint64_t shape = 0xCBF29CE484222325U;
  const auto mix = [&shape](std::size_t value) { shape = (shape ^ value) * 0x100000001B3U; };
  std::apply(
      [&mix](const auto&... argument) {
        [[maybe_unused]] const auto add = [&mix](const auto& array, const LeafPath&) {
          if constexpr (requires { array.extents()[0]; }) {
            mix(sizeof(*array.data()));
            for (std::size_t axis = 1; axis < std::remove_cvref_t<decltype(array)>::rank; ++axis) {
              mix(array.extents()[axis]);
            }
          } else {
            mix(1);
          }
        };
        (visit_arrays(argument, LeafPath("input"), add), ...);
      },
      arguments);
  return shape;
}

}}}  // namespace fanout::v0::detail
