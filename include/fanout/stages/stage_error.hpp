// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>

#include <fanout/base/error.hpp>
#include <fanout/base/exception_as.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// Thrown by a call of a Pipeline if a stage threw, after all steps that had begun have ended. Holds what the stage
/// threw, or a Timeout for a step that began or ended after PipelineOptions::deadline. If several stages threw at the
/// same time, holds that of one of them.
class [[gnu::visibility("default")]] StageError : public Error {
 public:
  /// `exception` is not null.
  [[gnu::cold]] FANOUT_INLINE StageError(std::size_t stage, std::size_t micro_batch, const RowRange& rows,
                                         std::exception_ptr exception);

  /// The position of the stage in the pipeline.
  std::size_t stage() const noexcept { return stage_; }
  /// The position of the micro-batch in the batch, and its rows there.
  std::size_t micro_batch() const noexcept { return micro_batch_; }
  const RowRange& rows() const noexcept { return rows_; }

  /// What the stage threw.
  const std::exception_ptr& exception() const noexcept { return exception_; }
  /// The same if it is an E, a class or a number, otherwise null. Lives as long as this error.
  template <class E>
  const E* get_if() const noexcept {
    return detail::exception_as<E>(exception_);
  }
  /// Throws it.
  [[noreturn]] void rethrow() const { std::rethrow_exception(exception_); }

 private:
  std::size_t stage_;
  std::size_t micro_batch_;
  RowRange rows_;
  std::exception_ptr exception_;
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/stages/stage_error.ipp>
#endif
