// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fanout_test {

/// A safetensors file, as bytes: this header, and so many bytes of elements behind it.
inline std::string file_of(std::string_view header, std::size_t elements = 0) {
  std::string bytes;
  std::uint64_t size = header.size();
  for (int i = 0; i < 8; ++i, size /= 256) bytes += static_cast<char>(size % 256);
  return bytes + std::string(header) + std::string(elements, 'x');
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace fanout_test
