// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>

#include <fanout/memory/memory_operations.hpp>

namespace fanout_test {

/// A memory of a device that does not exist, in truth host memory, which notes what is done with it. One at a time.
class CountingMemory {
 public:
  CountingMemory() { current() = this; }
  CountingMemory(const CountingMemory&) = delete;
  CountingMemory& operator=(const CountingMemory&) = delete;
  ~CountingMemory() { current() = nullptr; }

  static constexpr fanout::MemorySpace space{{.kind = "counting", .index = 0}};
  fanout::backend::Memory memory() const { return {space, &operations}; }
  /// The same, as a table for adopted bytes.
  fanout::backend::Memory adopting() const { return {space, &adopting_operations}; }

  /// Bytes that were allocated and not released; a release of anything else ends the program.
  std::size_t alive() const {
    const std::lock_guard lock(mutex_);
    return alive_.size();
  }

  std::atomic<int> allocated{0};
  std::atomic<int> released{0};
  std::atomic<int> copied{0};
  std::atomic<int> cleared{0};
  std::atomic<int> adopted_released{0};
  void* last_owner = nullptr;
  std::atomic<bool> exhausted{false};
  std::function<void()> before_allocating;

 private:
  static CountingMemory*& current() {
    static CountingMemory* memory = nullptr;
    return memory;
  }

  static void* allocate(const fanout::MemorySpace& where, std::size_t bytes) {
    if (current()->before_allocating) current()->before_allocating();
    if (current()->exhausted) throw fanout::OutOfMemory("counting memory is exhausted");
    void* data = fanout::backend::host_memory_operations.allocate(where, bytes);
    const std::lock_guard lock(current()->mutex_);
    current()->alive_.emplace(data, bytes);
    ++current()->allocated;
    return data;
  }
  static void release(const fanout::MemorySpace& where, void* data, std::size_t bytes, void* owner) noexcept {
    {
      const std::lock_guard lock(current()->mutex_);
      if (owner != nullptr || current()->alive_.at(data) != bytes) std::abort();
      current()->alive_.erase(data);
    }
    ++current()->released;
    fanout::backend::host_memory_operations.release(where, data, bytes, owner);
  }
  static void release_adopted(const fanout::MemorySpace&, void*, std::size_t, void* owner) noexcept {
    ++current()->adopted_released;
    current()->last_owner = owner;
  }
  static void copy(const fanout::MemorySpace& where, void* to, const void* from, std::size_t bytes) {
    ++current()->copied;
    fanout::backend::host_memory_operations.copy(where, to, from, bytes);
  }
  static void clear(const fanout::MemorySpace& where, void* data, std::size_t bytes) {
    ++current()->cleared;
    fanout::backend::host_memory_operations.clear(where, data, bytes);
  }

  static const fanout::backend::MemoryOperations operations;
  static const fanout::backend::MemoryOperations adopting_operations;

  mutable std::mutex mutex_;
  std::map<void*, std::size_t> alive_;
};

inline constexpr fanout::backend::MemoryOperations CountingMemory::operations{&allocate, &release, &copy, &clear,
                                                                              &operations};
inline constexpr fanout::backend::MemoryOperations CountingMemory::adopting_operations{&allocate, &release_adopted,
                                                                                       &copy, &clear, &operations};

}  // namespace fanout_test
