// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A dataset with samples at positions: `dataset.size()`, and a const `dataset[i]`, which may return a reference.
template <class D>
concept IndexedDataset = requires(const D& dataset, std::size_t i) {
  { dataset.size() } -> std::convertible_to<std::size_t>;
  requires !std::is_void_v<decltype(dataset[i])>;
};

/// A dataset that makes whole batches: `dataset.size()`, and a const call `dataset(samples)`.
template <class D>
concept BatchDataset = requires(const D& dataset, std::span<const std::size_t> samples) {
  { dataset.size() } -> std::convertible_to<std::size_t>;
  requires !std::is_void_v<decltype(dataset(samples))>;
};

/// A number of samples, which may be of any type. Throws InvalidArgument for a negative one.
template <class I>
std::size_t checked_samples(I size) {
  if constexpr (std::is_arithmetic_v<I> && std::is_signed_v<I>) {
    if (size < 0) {
      throw InvalidArgument(explain({.what = "a loader of a negative number of samples",
                                     .where = "Loader",
                                     .expected = "0 or more",
                                     .found = std::to_string(size)}));
    }
  }
  return static_cast<std::size_t>(size);
}

/// The number of samples. An array has one for each row.
template <class D>
std::size_t samples_of(const D& dataset) {
  if constexpr (ArrayLeaf<D>) {
    return leaf_traits<D>::rows(dataset);
  } else if constexpr (IndexedDataset<D> || BatchDataset<D>) {
    return checked_samples(dataset.size());
  } else {
    return 0;  // the loader has refused it
  }
}

/// A function that makes batches of so many samples.
template <class F>
class BatchFunction {
 public:
  BatchFunction(std::size_t samples, F function) : samples_(samples), function_(std::move(function)) {}

  std::size_t size() const noexcept { return samples_; }
  decltype(auto) operator()(
      std::span<const std::size_t> samples) const requires std::invocable<const F&, std::span<const std::size_t>> {
    return function_(samples);
  }

 private:
  std::size_t samples_;
  F function_;
};

}}}  // namespace fanout::v0::detail
