// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fanout/memory/memory_space.hpp>
#include <fanout/state/dtype.hpp>
#include <fanout/state/state_header.hpp>

namespace fanout { inline namespace v0 { namespace detail {

using ReleaseBytes = void(std::byte* data, std::size_t bytes) noexcept;

/// One array, number or text of a tree, as one tensor of a file. Borrows its elements. Byte is `const std::byte` if
/// they are only read.
template <class Byte>
struct StateLeaf {
  std::string_view name;
  Dtype dtype = Dtype::u8;
  std::vector<std::uint64_t> shape;
  Byte* data = nullptr;
  MemorySpace space = host_memory;
  std::vector<std::size_t> strides = {};  ///< in elements; none if the elements are contiguous
  bool is_text = false;
  /// For a text that is written: replaces all of it.
  void (*assign)(void* text, std::string_view letters) = nullptr;
  void* text = nullptr;
  /// For a tensor that may take over other memory of the same size, in place of a copy: it calls `release(data, bytes)`
  /// at its end, also if this throws.
  void (*adopt)(void* tensor, std::byte* data, ReleaseBytes* release) = nullptr;
  void* tensor = nullptr;
};

/// Calls `f(data, bytes)` for each contiguous run of the elements, in row-major order.
template <class Byte, class F>
void visit_runs(const StateLeaf<Byte>& leaf, const F& f) {
  std::uint64_t bytes = 0;
  if (!count_bytes(leaf.dtype, leaf.shape, bytes) || bytes == 0) return;
  if (leaf.strides.empty()) return f(leaf.data, bytes);
  const std::size_t size = size_of(leaf.dtype);
  std::size_t run = 1, outer = leaf.shape.size();
  while (outer > 0 && (leaf.shape[outer - 1] == 1 || leaf.strides[outer - 1] == run)) {
    run *= static_cast<std::size_t>(leaf.shape[--outer]);
  }
  std::vector<std::size_t> at(outer);
  for (std::size_t axis = 0;;) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < outer; ++i) first += at[i] * leaf.strides[i];
    f(leaf.data + first * size, run * size);
    for (axis = outer; axis > 0 && ++at[axis - 1] == leaf.shape[axis - 1]; --axis) at[axis - 1] = 0;
    if (axis == 0) return;
  }
}

}}}  // namespace fanout::v0::detail
