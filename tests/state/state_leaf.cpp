// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/state_leaf.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using fanout::detail::StateLeaf;

namespace {

/// The elements of a leaf of 16-bit numbers, one by one.
std::vector<std::uint16_t> one_by_one(const StateLeaf<const std::byte>& leaf) {
  std::vector<std::uint16_t> elements;
  std::size_t count = 1;
  for (const std::uint64_t extent : leaf.shape) count *= extent;
  const void* const bytes = leaf.data;
  const auto* const data = static_cast<const std::uint16_t*>(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i, offset = 0;
    for (std::size_t axis = leaf.shape.size(); axis > 0; --axis) {
      offset += rest % leaf.shape[axis - 1] * leaf.strides[axis - 1];
      rest /= leaf.shape[axis - 1];
    }
    elements.push_back(data[offset]);
  }
  return elements;
}

}  // namespace

TEST_CASE("the runs of a strided array are its elements in order, and as long as they can be") {
  std::vector<std::uint16_t> memory(10'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint16_t>(i);
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    StateLeaf<const std::byte> leaf{.name = "x",
                                    .dtype = fanout::detail::Dtype::u16,
                                    .shape = {},
                                    .data = reinterpret_cast<const std::byte*>(memory.data())};
    // A part of an array: each axis has gaps or none.
    std::size_t stride = 1;
    bool has_gaps = false;
    std::vector<std::uint64_t> shape;
    std::vector<std::size_t> strides;
    for (std::size_t axes = 1 + random() % 4; axes > 0; --axes) {
      const std::size_t extent = random() % 5, gap = random() % 3 / 2;
      shape.insert(shape.begin(), extent);
      strides.insert(strides.begin(), stride);
      has_gaps = has_gaps || (gap != 0 && axes > 1);
      stride *= extent + gap;
    }
    leaf.shape = shape;
    leaf.strides = strides;
    std::vector<std::uint16_t> elements;
    std::size_t runs = 0;
    visit_runs(leaf, [&](const void* data, std::size_t bytes) {
      const auto* const first = static_cast<const std::uint16_t*>(data);
      elements.insert(elements.end(), first, first + bytes / 2);
      ++runs;
    });
    CHECK(elements == one_by_one(leaf));
    if (!has_gaps) CHECK(runs == (elements.empty() ? 0 : 1));
  }
}
