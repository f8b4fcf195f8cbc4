// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 {

/// This shard's rows of an array that all shards fill together: [rows, trailing...]. Made by output(). Cheap to copy.
/// Borrows memory of the call: it must not outlive `forward`, but `forward` may return it. If all shards return it at
/// the same place, that memory becomes the gathered array, without a copy.
template <class T, std::size_t R>
class Output : public View<T, R> {
 public:
  /// The rows `rows` of `buffer`. A row has the extents of `extents` after the first. Borrows the buffer.
  Output(detail::OutputBuffer& buffer, RowRange rows, const Extents<R>& extents) noexcept
      : Output(buffer, buffer.row(rows.first), buffer.memory().space, rows, extents) {}
  /// The same if the caller knows the address of the first row, and the memory.
  Output(detail::OutputBuffer& buffer, std::byte* first, const MemorySpace& space, RowRange rows,
         const Extents<R>& extents) noexcept
      : View<T, R>(static_cast<T*>(static_cast<void*>(first)), extents.with_rows(rows.size()), space),
        buffer_(&buffer),
        first_row_(rows.first) {}

  /// The buffer that all shards share, and the row of it that is row 0 here.
  detail::OutputBuffer& buffer() const noexcept { return *buffer_; }
  std::size_t first_row() const noexcept { return first_row_; }

  /// The same memory as a tensor, for members of structs and values of maps that are tensors. The tensor shares its
  /// elements with this output until they are gathered. It stays valid after the call; if the output is written into a
  /// destination of into(), as long as that does. If the memory cannot be shared, it is a copy.
  operator Tensor<T, R>() const {  // NOLINT(google-explicit-constructor): stands in for a tensor
    const backend::MemoryOperations* const windows = detail::windows_in(buffer_->memory());
    if (windows == nullptr) return Tensor<T, R>(View<const T, R>(*this), *buffer_->memory().operations);
    buffer_->retain();
    return Tensor<T, R>(detail::Storage({this->space(), windows}, this->data(), this->size() * sizeof(T), buffer_),
                        this->extents());
  }

 private:
  detail::OutputBuffer* buffer_;
  std::size_t first_row_;
};

template <class T, std::size_t R>
struct leaf_traits<Output<T, R>> : leaf_traits<View<T, R>> {};

}}  // namespace fanout::v0
