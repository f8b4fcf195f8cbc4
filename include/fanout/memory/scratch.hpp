// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/memory/output_buffer.hpp>

namespace fanout::inline v0 {

/// The memory that one shard asked for and nobody else sees. All of it goes when this goes.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    while (last_ != nullptr) {
      OutputBuffer* buffer = last_;
      last_ = buffer->before();
      buffer->drop();
    }
  }

  /// `bytes` bytes, not set to anything. Throws OutOfMemory.
  void* allocate(const Memory& memory, std::size_t bytes) { return make_buffer(memory, 1, bytes).row(0); }

  /// An output buffer that no other shard shares. Throws as its constructor.
  OutputBuffer& make_buffer(const Memory& memory, std::size_t rows, std::size_t row_bytes) {
    last_ = new OutputBuffer(memory, rows, row_bytes, last_);
    return *last_;
  }

 private:
  OutputBuffer* last_ = nullptr;
};

}  // namespace fanout::inline v0
