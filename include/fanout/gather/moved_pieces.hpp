// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/array/tensor.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The arrays of all shards in one memory: those that are there already, and copies of the others. Copies from
/// different devices are made at the same time. Borrows the arrays.
template <class T, std::size_t R>
class MovedPieces {
 public:
  /// Throws OutOfMemory, and what backend::transfer() throws.
  template <class X>
  MovedPieces(const ShardResults<X>& pieces, const backend::Memory& memory)
      : data_(pieces.size(), [&pieces](std::size_t i) -> const T* { return pieces[i].data(); }),
        copies_(count_elsewhere(pieces, memory.space)) {
    InlineArray<backend::Transfer> transfers(copies_.size());
    std::size_t next = 0;
    for (std::size_t i = 0; next < copies_.size(); ++i) {
      if (pieces[i].space() == memory.space) continue;
      copies_[next] = Tensor<T, R>::uninitialized(pieces[i].extents(), memory);
      data_[i] = copies_[next].data();
      transfers[next] = {copies_[next].data(), pieces[i].space(), pieces[i].data(), pieces[i].size() * sizeof(T)};
      ++next;
    }
    backend::transfer_all(memory, transfers.data(), transfers.size());
  }

  /// The elements of the i-th shard's array.
  const T* data(std::size_t i) const noexcept { return data_[i]; }

 private:
  template <class X>
  static std::size_t count_elsewhere(const ShardResults<X>& pieces, const MemorySpace& space) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) count += pieces[i].space() == space ? 0U : 1U;
    return count;
  }

  InlineArray<const T*> data_;
  InlineArray<Tensor<T, R>> copies_;
};

}}}  // namespace fanout::v0::detail
