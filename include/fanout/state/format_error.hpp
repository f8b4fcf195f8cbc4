// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 {

/// A file that is not what its format says: cut, changed, or no safetensors file at all. The message names the file,
/// the byte, what was expected there and what was found.
class [[gnu::visibility("default")]] FormatError : public Error {
 public:
  FormatError(const std::string& text, std::uint64_t offset) : Error(text), offset_(offset) {}

  /// Where the file is wrong, in bytes from its beginning.
  std::uint64_t offset() const noexcept { return offset_; }

 private:
  std::uint64_t offset_;
};

namespace detail {

[[noreturn]] inline void refuse_format(std::string_view file, std::uint64_t offset, std::string expected,
                                       std::string found) {
  throw FormatError(explain({.what = "an invalid safetensors file",
                             .where = std::string(file) + ", byte " + std::to_string(offset),
                             .expected = std::move(expected),
                             .found = std::move(found)}),
                    offset);
}

}  // namespace detail

}}  // namespace fanout::v0
