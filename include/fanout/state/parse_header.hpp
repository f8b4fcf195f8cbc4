// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/state/format_error.hpp>
#include <fanout/state/json_reader.hpp>
#include <fanout/state/state_header.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Reads the header of a safetensors file, and checks that its tensors fill the rest of the file.
class HeaderParser {
 public:
  HeaderParser(std::span<const std::byte> file, std::string_view path)
      : size_(file.size()), path_(path), text_(text_of(file, path)), reader_(text_, header_begin, path) {}

  FANOUT_INLINE StateHeader parse();

 private:
  FANOUT_INLINE static std::string_view text_of(std::span<const std::byte> file, std::string_view path);

  using Names = std::vector<std::pair<std::string_view, std::uint64_t>>;  // and their places in the file

  FANOUT_INLINE void entry();

  FANOUT_INLINE void metadata();

  FANOUT_INLINE void tensor(std::string name, std::uint64_t offset);

  FANOUT_INLINE void dtype(HeaderEntry& entry);

  FANOUT_INLINE void shape(HeaderEntry& entry);

  FANOUT_INLINE void offsets(HeaderEntry& entry);

  FANOUT_INLINE void check_names() const;

  FANOUT_INLINE void refuse_twice(Names& names) const;

  /// The tensors must fill the file from the header to its end, each behind the one before it.
  FANOUT_INLINE void check_offsets() const;

  static std::string offsets_text(const HeaderEntry& entry) {
    return "data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
  }

  [[noreturn]] void refuse(const HeaderEntry& entry, std::string_view expected, const std::string& found) const {
    refuse_format(path_, entry.offset, expected, found + " of " + quoted(entry.name));
  }

  static std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

  std::uint64_t size_;
  std::string_view path_;
  std::string_view text_;
  JsonReader reader_;
  StateHeader header_;
  bool has_metadata_ = false;
};

/// Reads the header of a safetensors file, whose bytes are `file`. Throws FormatError, which names `path`, unless the
/// file is valid to its last byte.
inline StateHeader parse_header(std::span<const std::byte> file, std::string_view path) {
  return HeaderParser(file, path).parse();
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/parse_header.ipp>
#endif
