// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <fanout/base/error.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout_test {

/// Memories `remote:0`, `remote:1`, ... of their own: their addresses are none of the host's, so that what touches them
/// from there ends the program. Counts what is done.
class RemoteMemory {
 public:
  static fanout::backend::Memory memory(int index) {
    fanout::backend::declare_memory("remote", operations);
    return {{{.kind = "remote", .index = index}}, &operations};
  }

  /// What a kernel of the remote device may use.
  template <class T>
  static T* reach(T* remote) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(remote) & ~mark);
  }

  struct Counts {
    std::atomic<int> allocated{0}, released{0}, copied{0}, cleared{0}, transferred{0}, waited{0};
    std::atomic<std::size_t> sent{0}, fetched{0};  // bytes to and from remote memory
  };
  static Counts& counts() {
    static Counts counts;
    return counts;
  }
  static std::size_t alive() {
    const std::lock_guard lock(mutex());
    return parts().size();
  }
  /// The n-th allocation or transfer from now on throws; 0 for none.
  static std::atomic<int>& failing() {
    static std::atomic<int> failing{0};
    return failing;
  }

 private:
  static constexpr std::uintptr_t mark = std::uintptr_t{1} << 62;

  struct Part {
    std::size_t bytes;
    fanout::MemorySpace space;
  };
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::map<std::uintptr_t, Part>& parts() {
    static std::map<std::uintptr_t, Part> parts;
    return parts;
  }

  /// Ends the program unless these bytes are allocated there.
  template <class T>
  static T* check(const fanout::MemorySpace& space, T* data, std::size_t bytes) {
    if (space == fanout::host_memory) {
      if ((reinterpret_cast<std::uintptr_t>(data) & mark) != 0) std::abort();
      return data;
    }
    T* const real = reach(data);
    if (real == data) std::abort();
    const auto at = reinterpret_cast<std::uintptr_t>(real);
    const std::lock_guard lock(mutex());
    auto part = parts().upper_bound(at);
    if (part == parts().begin()) std::abort();
    --part;
    if (!(part->second.space == space) || at + bytes > part->first + part->second.bytes) std::abort();
    return real;
  }

  static void may_fail() {
    if (failing() > 0 && --failing() == 0) throw fanout::OutOfMemory("remote memory fails");
  }

  static void* allocate(const fanout::MemorySpace& space, std::size_t bytes) {
    may_fail();
    void* const real = fanout::backend::host_memory_operations.allocate(fanout::host_memory, bytes);
    ++counts().allocated;
    const std::lock_guard lock(mutex());
    parts().emplace(reinterpret_cast<std::uintptr_t>(real), Part{bytes, space});
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(real) | mark);
  }
  static void release(const fanout::MemorySpace& space, void* data, std::size_t bytes, void* owner) noexcept {
    void* const real = reach(data);
    {
      const std::lock_guard lock(mutex());
      const auto part = parts().find(reinterpret_cast<std::uintptr_t>(real));
      if (owner != nullptr || part == parts().end() || part->second.bytes != bytes || !(part->second.space == space)) {
        std::abort();
      }
      parts().erase(part);
    }
    ++counts().released;
    fanout::backend::host_memory_operations.release(fanout::host_memory, real, bytes, nullptr);
  }
  static void copy(const fanout::MemorySpace& space, void* to, const void* from, std::size_t bytes) {
    ++counts().copied;
    if (bytes != 0) std::memcpy(check(space, to, bytes), check(space, from, bytes), bytes);
  }
  static void clear(const fanout::MemorySpace& space, void* data, std::size_t bytes) {
    ++counts().cleared;
    if (bytes != 0) std::memset(check(space, data, bytes), 0, bytes);
  }
  static void transfer(const fanout::MemorySpace& to, void* to_data, const fanout::MemorySpace& from,
                       const void* from_data, std::size_t bytes) {
    may_fail();
    ++counts().transferred;
    (to == fanout::host_memory ? counts().fetched : counts().sent) += bytes;
    std::memcpy(check(to, to_data, bytes), check(from, from_data, bytes), bytes);
  }
  static void wait(const fanout::MemorySpace&) { ++counts().waited; }

  static const fanout::backend::MemoryOperations operations;
  static const fanout::backend::MemoryOperations windows;
};
inline constexpr fanout::backend::MemoryOperations RemoteMemory::operations{.allocate = &allocate,
                                                                            .release = &release,
                                                                            .copy = &copy,
                                                                            .clear = &clear,
                                                                            .fresh = &operations,
                                                                            .transfer = &transfer,
                                                                            .wait = &wait,
                                                                            .windows = &windows};
inline constexpr fanout::backend::MemoryOperations RemoteMemory::windows =
    fanout::detail::window_operations(operations);

}  // namespace fanout_test
