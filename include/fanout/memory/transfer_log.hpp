// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/exchange.hpp>
#include <fanout/memory/memory_space.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Is told of each transfer() of its thread while a LoggedTransfers lives.
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

/// Logs the transfers of this thread. A log of null logs none.
class LoggedTransfers {
 public:
  explicit LoggedTransfers(TransferLog* log) noexcept : before_(detail::exchange(transfer_log(), log)) {}
  LoggedTransfers(const LoggedTransfers&) = delete;
  LoggedTransfers& operator=(const LoggedTransfers&) = delete;
  ~LoggedTransfers() { transfer_log() = before_; }

 private:
  TransferLog* before_;
};

inline void log_transfer(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept {
  if (TransferLog* const log = transfer_log()) log->note(to, from, bytes);
}

}}}  // namespace fanout::v0::detail
