// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/state/state_header.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The elements begin at a multiple of this, so that they are aligned in a file that is mapped.
inline constexpr std::size_t data_alignment = 64;

/// Appends a JSON string. The text must be valid UTF-8.
FANOUT_INLINE void append_json(std::string& json, std::string_view text);

/// Sets the places of the elements: those of the largest types first, so that all are aligned to their own size, then
/// by name, so that equal states make equal files. Returns the entries' indices in the order of their places. Throws
/// InvalidArgument if the bytes cannot be counted, if two entries have one name, or if a name is no name of the format.
FANOUT_INLINE std::vector<std::size_t> place_entries(std::vector<HeaderEntry>& entries);

/// The bytes of a file before its elements: the size of the header, the header, and spaces up to the alignment. The
/// entries have their places, in this order. Throws InvalidArgument if the header is too large for the format.
FANOUT_INLINE std::string header_bytes(const std::vector<HeaderEntry>& entries, const std::vector<std::size_t>& order);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/write_header.ipp>
#endif
