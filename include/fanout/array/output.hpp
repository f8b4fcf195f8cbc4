// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 {

/// The shard's rows of an array that all shards fill together. output() returns it. Cheap to copy. Borrows memory of the call,
/// so it must not outlive `forward`, but may be returned. If all shards return it at the same place, that memory becomes
/// the gathered array, without a copy.
template <class T, std::size_t R>
class Output : public View<T, R> {
 public:
  /// The rows `rows` of `buffer`. A row has the trailing extents of `extents`.
  Output(detail::OutputBuffer& buffer, RowRange rows, const Extents<R>& extents) noexcept
      : Output(buffer, buffer.row(rows.first), buffer.memory().space, rows, extents) {}
  /// The same if the caller knows their address and memory.
  Output(detail::OutputBuffer& buffer, std::byte* first, const MemorySpace& space, RowRange rows,
         const Extents<R>& extents) noexcept
      : View<T, R>(reinterpret_cast<T*>(first), extents.with_rows(rows.size()), space),
        buffer_(&buffer),
        first_row_(rows.first) {}

  detail::OutputBuffer& buffer() const noexcept { return *buffer_; }
  std::size_t first_row() const noexcept { return first_row_; }

  /// The same memory as a tensor, for members of structs and values of maps that are tensors. It shares the elements with
  /// this output until it is gathered. It stays valid after the call.
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
