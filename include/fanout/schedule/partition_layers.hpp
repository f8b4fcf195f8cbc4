// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

/// Divides the layers of a model into stages, one for each device, so that the slowest stage is as fast as possible.
/// Returns how many layers each stage has, in their order: `{5, 3}` for layers 0 to 4 and 5 to 7.
///
/// Layer i takes `seconds[i]` on a device of speed 1, and has `bytes[i]` of weights and values. Device d is `speeds[d]`
/// times as fast, and has room for `capacities[d]` bytes; without `bytes` and `capacities`, memory does not count. Of
/// several best divisions, it returns one whose first stages are also as fast as possible. A stage may have no layers,
/// if there are fewer layers than devices or a device is too slow.
///
/// The division is exact, by dynamic programming over prefixes of the layers. It takes O(d n log n) steps and O(d n)
/// memory for n layers on d devices. Throws InvalidArgument if the numbers of arguments do not fit, if a number is
/// negative, infinite or NaN, and if the layers do not fit into the memories.
[[nodiscard]] FANOUT_INLINE std::vector<std::size_t> partition_layers(std::span<const double> seconds,
                                                                      std::span<const double> speeds,
                                                                      std::span<const std::size_t> bytes = {},
                                                                      std::span<const std::size_t> capacities = {});

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/schedule/partition_layers.ipp>
#endif
