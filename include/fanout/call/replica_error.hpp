// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exception_as.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/type_info.hpp>
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
  /// `Text` is always std::string. As a template, this costs nothing to compile in a file that calls no model.
  template <std::same_as<std::string> Text = std::string>
  explicit ReplicaError(std::vector<Failure> failures, std::size_t shards, const Text& note = {})
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
  template <std::same_as<std::string> Text = std::string>
  ReplicaError(const char* step, std::vector<Failure> failures, std::size_t replicas, bool has_rows,
               const Text& note = {})
      : Error(ReplicaError::text<Text>(step, failures, replicas, has_rows) + (note.empty() ? "" : "\n  " + note)),
        failures_(std::move(failures)),
        note_(note) {}

 private:
  /// Shows what stands inside, which may be another ReplicaError.
  template <class Text>
  static Text indented(Text text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != Text::npos; at += 3) text.insert(at + 1, "  ");
    return text;
  }

  template <class Text>
  static Text text(const char* step, const std::vector<Failure>& failures, std::size_t replicas, bool has_rows) {
    Text text = Text(step) + " failed on " + std::to_string(failures.size()) + " of " + std::to_string(replicas) +
                (replicas == 1 ? " replica" : " replicas");
    for (const Failure& failure : failures) {
      const Text where = " in replica " + std::to_string(failure.shard) + " on device " + to_string(failure.device) +
                         (failure.process.empty() ? "" : " of " + failure.process) +
                         (has_rows ? ", rows " + to_string(failure.rows) : "");
      try {
        std::rethrow_exception(failure.exception);
      } catch (const std::exception& e) {
        text += "\n  Caught " + detail::class_name(e) + where + ": " + indented<Text>(e.what());
      } catch (...) {
        text += "\n  Caught an exception that is no std::exception" + where;
      }
    }
    return text;
  }

  std::vector<Failure> failures_;
  std::string note_;
};

}}  // namespace fanout::v0
