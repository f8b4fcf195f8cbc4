// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/stages/stage_error.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include <fanout/base/caught_text.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

inline std::string stage_error_text(std::size_t stage, std::size_t micro_batch, const RowRange& rows,
                                    const std::exception_ptr& exception) {
  Text text;
  text << "stage " << stage << " failed on micro-batch " << micro_batch << ", rows " << rows;
  add_caught(text, exception);
  return text;
}

}  // namespace detail

StageError::StageError(std::size_t stage, std::size_t micro_batch, const RowRange& rows, std::exception_ptr exception)
    : Error(detail::stage_error_text(stage, micro_batch, rows, exception)),
      stage_(stage),
      micro_batch_(micro_batch),
      rows_(rows),
      exception_(std::move(exception)) {}

}}  // namespace fanout::v0
