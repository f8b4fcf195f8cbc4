// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/memory/memory_space.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Is told of each transfer() between two memories that its thread makes while it is transfer_log().
class TransferLog {
 public:
  TransferLog(const TransferLog&) = delete;
  TransferLog& operator=(const TransferLog&) = delete;
  virtual void note(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept = 0;

 protected:
  TransferLog() = default;
  ~TransferLog() = default;
};

/// The log of this thread's transfers; null without.
[[gnu::visibility("default")]] inline TransferLog*& transfer_log() noexcept {
  static thread_local TransferLog* log = nullptr;
  return log;
}

inline void log_transfer(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept {
  if (TransferLog* const log = transfer_log()) log->note(to, from, bytes);
}

}}}  // namespace fanout::v0::detail
