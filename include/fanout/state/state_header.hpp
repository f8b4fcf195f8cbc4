// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/state/dtype.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// A file is the size of its header as eight bytes, the header, and the elements of all tensors without gaps. Numbers
// are little-endian. The header is a JSON object: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}},
// and "__metadata__" with an object of strings.

inline constexpr std::string_view metadata_name = "__metadata__";

/// The bytes before the header.
inline constexpr std::size_t header_begin = 8;

/// The reference implementation reads no larger header.
inline constexpr std::uint64_t largest_header = 100'000'000;

/// One tensor of a file.
struct HeaderEntry {
  std::string name;
  Dtype dtype = Dtype::u8;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< of its elements, in bytes behind the header
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< of its name in the file, for messages
};

struct StateHeader {
  std::vector<HeaderEntry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::uint64_t data_begin = header_begin;  ///< of the first element, in bytes from the beginning of the file
};

/// The bytes of so many elements. False if they cannot be counted, or end within a byte. As in the reference
/// implementation, the elements are counted first: 0 of them have 0 bytes if a 0 comes before their product overflows.
FANOUT_INLINE bool count_bytes(Dtype dtype, const std::vector<std::uint64_t>& shape, std::uint64_t& bytes) noexcept;

/// Throws InvalidArgument: a file has each name once.
[[noreturn]] inline void refuse_name_twice(std::string_view name) {
  throw InvalidArgument(
      explain({.what = "two values of a tree have one name", .where = name, .advice = "choose keys without dots"}));
}

/// `[2, 3]`, and `[]` for a number.
template <class Shape>
std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  }
  return text + "]";
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/state_header.ipp>
#endif
