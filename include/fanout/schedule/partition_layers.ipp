// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/schedule/partition_layers.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/plan/weighted_split.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The sums of the first 0, 1, ... numbers.
template <class T>
std::vector<T> prefix_sums(std::span<const T> numbers) {
  std::vector<T> sums{T()};
  for (const T number : numbers) sums.push_back(sums.back() + number);
  return sums;
}

inline void check_layers(const char* of, std::span<const double> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const DoubleBits bits(numbers[i]);
    if (bits.is_zero() || bits.is_finite_positive()) continue;
    throw InvalidArgument(explain({.what = "an invalid number",
                                   .where = Text() << "partition_layers, " << of << ", position " << i,
                                   .expected = "a finite number that is not negative",
                                   .found = std::to_string(numbers[i])}));
  }
}

inline void check_count(const char* of, std::size_t count, std::size_t wanted) {
  if (count == wanted) return;
  throw InvalidArgument(explain({.what = "wrong number of values",
                                 .where = Text() << "partition_layers, " << of,
                                 .expected = Text() << wanted,
                                 .found = Text() << count}));
}

}  // namespace detail

std::vector<std::size_t> partition_layers(std::span<const double> seconds, std::span<const double> speeds,
                                          std::span<const std::size_t> bytes, std::span<const std::size_t> capacities) {
  detail::check_layers("seconds", seconds);
  detail::check_layers("speeds", speeds);
  const bool memory_counts = !bytes.empty() || !capacities.empty();
  if (memory_counts) {
    detail::check_count("bytes", bytes.size(), seconds.size());
    detail::check_count("capacities", capacities.size(), speeds.size());
  }
  constexpr double never = std::numeric_limits<double>::max();  // an infinity would not survive -ffast-math
  const std::size_t layers = seconds.size();
  const std::vector<double> time = detail::prefix_sums(seconds);
  const std::vector<std::size_t> size = detail::prefix_sums(bytes);

  // The least time of the slowest stage, for each number of first layers on the devices so far. It grows with the
  // number. The time of the last of these devices falls with the layer that it begins with. So the best beginning is
  // where the two cross.
  std::vector<double> best(layers + 1, never);
  best[0] = 0;
  std::vector<std::size_t> begins(speeds.size() * (layers + 1));  // of each device, if it ends before that layer
  for (std::size_t device = 0; device < speeds.size(); ++device) {
    const std::vector<double> before = std::exchange(best, std::vector<double>(layers + 1, never));
    std::size_t first = 0;  // the first layer that it can begin with
    for (std::size_t end = 0; end <= layers; ++end) {
      while (memory_counts && size[end] - size[first] > capacities[device]) ++first;
      const auto alone = [&](std::size_t begin) {
        if (begin == end) return 0.0;
        const double work = time[end] - time[begin];
        return speeds[device] > 0 && work / speeds[device] < never ? work / speeds[device] : never;
      };
      std::size_t low = first;
      for (std::size_t high = end; low < high;) {
        const std::size_t middle = low + (high - low) / 2;
        if (before[middle] >= alone(middle)) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      const auto slowest = [&](std::size_t begin) { return std::max(before[begin], alone(begin)); };
      if (low > first && slowest(low - 1) <= slowest(low)) --low;
      best[end] = slowest(low);
      begins[device * (layers + 1) + end] = low;
    }
  }
  if (best[layers] == never) {
    const std::size_t room = std::accumulate(capacities.begin(), capacities.end(), std::size_t{0});
    throw InvalidArgument(explain({.what = "the layers do not fit on the devices",
                                   .where = "partition_layers",
                                   .expected = "layers in their order that fit into the capacities, and a speed above "
                                               "zero for each device that needs one",
                                   .found = detail::Text() << layers << " layers of " << size.back() << " bytes, and "
                                                           << speeds.size() << " devices for " << room << " bytes",
                                   .advice = "use more devices, or cut the largest layer"}));
  }
  std::vector<std::size_t> counts(speeds.size());
  for (std::size_t end = layers, device = speeds.size(); device-- > 0;) {
    const std::size_t begin = begins[device * (layers + 1) + end];
    counts[device] = end - begin;
    end = begin;
  }
  return counts;
}

}}  // namespace fanout::v0
