// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/format_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_format(std::string_view file, std::uint64_t offset, std::string_view expected, std::string_view found) {
  throw FormatError(explain({.what = "an invalid safetensors file",
                             .where = std::string(file) + ", byte " + std::to_string(offset),
                             .expected = expected,
                             .found = found}),
                    offset);
}

}}}  // namespace fanout::v0::detail
