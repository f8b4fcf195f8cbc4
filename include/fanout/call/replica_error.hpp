// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exception_as.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// The exception of one replica: its shard in the plan, its device, its rows in the whole batch, and what it threw.
struct Failure {
  std::size_t shard = 0;
  DeviceId device{.kind = "host", .index = 0};
  RowRange rows;
  std::exception_ptr exception;
  std::string process = {};  ///< `rank 2 on node7`, if several processes made the call
};

/// Thrown if `forward` threw on one or more replicas, after all shards have ended. Holds all exceptions, of any type.
/// The text lists them, one per line.
class [[gnu::visibility("default")]] ReplicaError : public Error {
 public:
  /// `failures` must not be empty, and must be in row order. `note` is a last line of the text: see note().
  explicit ReplicaError(std::vector<Failure> failures, std::size_t shards, const std::string& note = {})
      : ReplicaError("forward", std::move(failures), shards, true, note) {}

  /// The failures, lowest rows first. Live as long as this error.
  const std::vector<Failure>& failures() const noexcept { return failures_; }

  /// Why shards were not run again, or the call not made again, though its options ask for it. Otherwise empty.
  const std::string& note() const noexcept { return note_; }

  /// The first failure that is an E, a class or a number, or null. Lives as long as this error.
  template <class E>
  const E* get_if() const noexcept {
    for (const Failure& failure : failures_) {
      if (const E* const wanted = detail::exception_as<E>(failure.exception)) return wanted;
    }
    return nullptr;
  }

  /// Throws the exception of the lowest rows.
  [[noreturn]] void rethrow() const { std::rethrow_exception(failures_.front().exception); }

 protected:
  /// For errors of another `step` than forward, with or without rows.
  [[gnu::cold]] FANOUT_INLINE ReplicaError(const char* step, std::vector<Failure> failures, std::size_t replicas,
                                           bool has_rows, const std::string& note = {});

 private:
  std::vector<Failure> failures_;
  std::string note_;
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/replica_error.ipp>
#endif
