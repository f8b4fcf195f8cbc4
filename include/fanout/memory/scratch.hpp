// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/storage.hpp>

namespace fanout::inline v0 {

/// The memory that one shard asked for and nobody else sees. All of it goes when this goes.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    for (OutputBuffer* buffer : buffers_) buffer->drop();
  }

  /// `bytes` bytes, not set to anything. Throws OutOfMemory.
  void* allocate(const Memory& memory, std::size_t bytes) { return storages_.emplace_back(memory, bytes).data(); }

  /// An output buffer that no other shard shares. Throws as its constructor.
  OutputBuffer& make_buffer(const Memory& memory, std::size_t rows, std::size_t row_bytes) {
    buffers_.reserve(buffers_.size() + 1);
    buffers_.push_back(new OutputBuffer(memory, rows, row_bytes));
    return *buffers_.back();
  }

 private:
  std::vector<Storage> storages_;
  std::vector<OutputBuffer*> buffers_;
};

}  // namespace fanout::inline v0
