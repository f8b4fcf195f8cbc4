// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fanout { inline namespace v0 { namespace detail {

/// Blocks of memory that travel as one message, without a copy. Borrows the memory. The sender's blocks need not be as
/// long as the receiver's: only the sum of their bytes is the same. One block of up to 1 GiB allocates nothing.
class MessageBlocks {
 public:
  MessageBlocks() = default;
  MessageBlocks(const void* data, std::size_t bytes) { add(data, bytes); }

  void add(const void* data, std::size_t bytes) {
    const auto first = reinterpret_cast<std::intptr_t>(data);
    for (std::size_t at = 0; at < bytes; at += largest) {
      add_block(static_cast<int>(std::min(largest, bytes - at)), first + static_cast<std::intptr_t>(at));
    }
  }
  bool empty() const noexcept { return count_ == 0; }

  // As MPI takes them.
  std::size_t count() const noexcept { return count_; }
  const int* sizes() const noexcept { return count_ == 1 ? &size_ : sizes_.data(); }
  const std::intptr_t* addresses() const noexcept { return count_ == 1 ? &address_ : addresses_.data(); }

 private:
  static constexpr std::size_t largest = std::size_t{1} << 30;  // MPI 3 counts in ints

  void add_block(int size, std::intptr_t address) {
    if (count_ == 0) {
      size_ = size;
      address_ = address;
    } else {
      if (count_ == 1) {
        sizes_.push_back(size_);
        addresses_.push_back(address_);
      }
      sizes_.push_back(size);
      addresses_.push_back(address);
    }
    ++count_;
  }

  std::size_t count_ = 0;
  int size_ = 0;  // the only block
  std::intptr_t address_ = 0;
  std::vector<int> sizes_;  // the blocks, if there are several
  std::vector<std::intptr_t> addresses_;
};

}}}  // namespace fanout::v0::detail
