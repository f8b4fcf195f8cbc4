// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/write_header.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fanout/base/error.hpp>
#include <fanout/state/dtype.hpp>
#include <fanout/state/utf8.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void append_json(std::string& json, std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  json += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += "\\u00";
      json += digits[static_cast<unsigned char>(c) / 16];
      json += digits[static_cast<unsigned char>(c) % 16];
    } else {
      json += c;
    }
  }
  json += '"';
}

std::vector<std::size_t> place_entries(std::vector<HeaderEntry>& entries) {
  std::vector<std::string_view> names;
  for (const HeaderEntry& entry : entries) {
    if (entry.name == metadata_name || find_invalid_utf8(entry.name) != entry.name.size()) {
      throw InvalidArgument(explain({.what = "a name that a safetensors file cannot have",
                                     .where = entry.name,
                                     .expected = "text in UTF-8 other than __metadata__",
                                     .advice = "choose another key of the map"}));
    }
    names.emplace_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse_name_twice(std::string(*twice));
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&entries](std::size_t a, std::size_t b) {
    const unsigned first = row_of(entries[a].dtype).bits, second = row_of(entries[b].dtype).bits;
    return first != second ? first > second : entries[a].name < entries[b].name;
  });
  std::uint64_t next = 0;
  for (const std::size_t i : order) {
    HeaderEntry& entry = entries[i];
    std::uint64_t bytes = 0;
    entry.begin = next;
    if (!count_bytes(entry.dtype, entry.shape, bytes) || __builtin_add_overflow(next, bytes, &next)) {
      throw InvalidArgument(explain({.what = "the bytes of a tree cannot be counted", .where = entry.name}));
    }
    entry.end = next;
  }
  return order;
}

std::string header_bytes(const std::vector<HeaderEntry>& entries, const std::vector<std::size_t>& order) {
  std::string text(header_begin, '\0');
  text += '{';
  for (const std::size_t i : order) {
    const HeaderEntry& entry = entries[i];
    if (text.back() == '}') text += ',';
    append_json(text, entry.name);
    text += R"(:{"dtype":")";
    text += name_of(entry.dtype);
    text += R"(","shape":[)";
    for (std::size_t axis = 0; axis < entry.shape.size(); ++axis) {
      if (axis != 0) text += ',';
      text += std::to_string(entry.shape[axis]);
    }
    text += R"(],"data_offsets":[)" + std::to_string(entry.begin) + ',' + std::to_string(entry.end) + "]}";
  }
  text += '}';
  text.append((data_alignment - text.size() % data_alignment) % data_alignment, ' ');
  std::uint64_t size = text.size() - header_begin;
  if (size > largest_header) {
    throw InvalidArgument(explain({.what = "a tree has too many values for a safetensors file",
                                   .expected = "a header of at most " + std::to_string(largest_header) + " bytes",
                                   .found = std::to_string(size),
                                   .advice = "keep numbers in arrays instead of one by one"}));
  }
  for (std::size_t i = 0; i < header_begin; ++i, size >>= 8U) text[i] = static_cast<char>(size & 0xFFU);
  return text;
}

}}}  // namespace fanout::v0::detail
