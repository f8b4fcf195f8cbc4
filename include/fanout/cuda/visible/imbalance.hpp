// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/cuda/runtime/card.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// What is compared of the cards that work side by side.
struct CardSize {
  /// Its index among the visible ones.
  int index = 0;
  std::size_t memory = 0;
  int multiprocessors = 0;
};

namespace detail {

/// Empty, or the warning, if one has less than 75% of another. `value(size)` is what is compared.
template <class Value>
std::string imbalance_of(const std::vector<CardSize>& sizes, const Value& value) {
  const CardSize* least = &sizes[0];
  const CardSize* most = &sizes[0];
  for (const CardSize& size : sizes) {
    if (value(size) < value(*least)) least = &size;
    if (value(*most) < value(size)) most = &size;
  }
  if (!(value(*least) < 0.75 * value(*most))) return {};
  return "There is an imbalance between your GPUs. You may want to exclude GPU " + std::to_string(least->index) +
         " which has less than 75% of the memory or cores of GPU " + std::to_string(most->index) +
         ". You can do so by naming the others, as in fanout::cuda_devices({0, 1}), or by setting the "
         "CUDA_VISIBLE_DEVICES environment variable; fanout::WeightedSplit gives each the rows that it can take.";
}

}  // namespace detail

/// The warning, if the smallest of these cards has less than 75% of the memory of the largest, or else of its
/// multiprocessors; it names both. Empty if not.
inline std::string imbalance_warning(const std::vector<CardSize>& sizes) {
  if (sizes.empty()) return {};
  std::string warning =
      detail::imbalance_of(sizes, [](const CardSize& size) { return static_cast<double>(size.memory); });
  if (!warning.empty()) return warning;
  return detail::imbalance_of(sizes, [](const CardSize& size) { return static_cast<double>(size.multiprocessors); });
}

}}}  // namespace fanout::v0::cuda
