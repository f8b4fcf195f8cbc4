// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>

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

[[noreturn]] FANOUT_INLINE void refuse_format(std::string_view file, std::uint64_t offset, std::string_view expected,
                                              std::string_view found);

}  // namespace detail

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/format_error.ipp>
#endif
