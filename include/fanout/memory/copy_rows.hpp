// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/copy_bytes.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The source of one part of each row of an array that is put together.
struct RowPart {
  const std::byte* from;  ///< the part of the first row
  std::size_t pitch;      ///< bytes from the part of one row to that of the next
  std::size_t bytes;
};

/// A copy that puts an array together row by row. A row is its `parts`, one after the other. There is no gap between
/// rows. Arrays concatenated by rows are one row of many parts. Columns of an array are many rows of one part.
struct RowsCopy {
  std::byte* to;
  std::size_t rows;
  const RowPart* parts;
  std::size_t count;
  std::size_t row_bytes;  ///< of all parts together

  std::size_t bytes() const noexcept { return rows * row_bytes; }
};

/// Copies bytes [begin, end) of the array that is put together. So several threads can share a copy. All of them pass
/// the same `streamed`.
FANOUT_INLINE void copy_part(const RowsCopy& copy, std::size_t begin, std::size_t end, bool streamed) noexcept;

/// Makes the whole copy on this thread.
FANOUT_INLINE void copy_rows(const RowsCopy& copy) noexcept;

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/copy_rows.ipp>
#endif
