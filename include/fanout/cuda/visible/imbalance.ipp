// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/visible/imbalance.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

std::string imbalance_of(const GpuSize* sizes, std::size_t count, double (*value)(const GpuSize&)) {
  const GpuSize* least = sizes;
  const GpuSize* most = sizes;
  for (const GpuSize* size = sizes; size != sizes + count; ++size) {
    if (value(*size) < value(*least)) least = size;
    if (value(*most) < value(*size)) most = size;
  }
  if (!(value(*least) < 0.75 * value(*most))) return {};
  return "There is an imbalance between your GPUs. You may want to exclude GPU " + std::to_string(least->index) +
         " which has less than 75% of the memory or cores of GPU " + std::to_string(most->index) +
         ". You can do so by naming the others, as in fanout::cuda_devices({0, 1}), or by setting the "
         "CUDA_VISIBLE_DEVICES environment variable; fanout::WeightedSplit gives each the rows that it can take.";
}

std::string imbalance_warning_of(const GpuSize* sizes, std::size_t count) {
  if (count == 0) return {};
  std::string warning =
      imbalance_of(sizes, count, [](const GpuSize& size) { return static_cast<double>(size.memory); });
  if (!warning.empty()) return warning;
  return imbalance_of(sizes, count, [](const GpuSize& size) { return static_cast<double>(size.multiprocessors); });
}

}}}}  // namespace fanout::v0::cuda::detail
