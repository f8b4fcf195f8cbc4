// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/parse_header.hpp>

#include <algorithm>
#include <numeric>
#include <optional>

#include <fanout/state/dtype.hpp>
#include <fanout/state/utf8.hpp>

namespace fanout { inline namespace v0 { namespace detail {

StateHeader HeaderParser::parse() {
  if (text_.empty() || text_[0] != '{') reader_.refuse("a { at the beginning of the header");
  reader_.expect('{', "a {");
  if (!reader_.take('}')) {
    do {
      entry();
    } while (reader_.take(','));
    reader_.expect('}', "a comma or a } behind an entry");
  }
  reader_.expect_end();
  header_.data_begin = header_begin + text_.size();
  check_names();
  check_offsets();
  return std::move(header_);
}

std::string_view HeaderParser::text_of(std::span<const std::byte> file, std::string_view path) {
  if (file.size() < header_begin) {
    refuse_format(path, file.size(), "eight bytes with the size of the header",
                  "the end of the file, after " + std::to_string(file.size()));
  }
  std::uint64_t size = 0;
  for (std::size_t i = header_begin; i > 0; --i) size = size << 8U | std::to_integer<std::uint64_t>(file[i - 1]);
  if (size > largest_header) {
    refuse_format(path, 0, "a header of at most " + std::to_string(largest_header) + " bytes",
                  "a size of " + std::to_string(size));
  }
  if (size > file.size() - header_begin) {
    refuse_format(path, file.size(), "a header of " + std::to_string(size) + " bytes",
                  "the end of the file, after " + std::to_string(file.size() - header_begin));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + header_begin, size);
  const std::size_t invalid = find_invalid_utf8(text);
  if (invalid != text.size()) {
    refuse_format(path, header_begin + invalid, "text in UTF-8",
                  "byte " + std::to_string(static_cast<unsigned char>(text[invalid])));
  }
  return text;
}

void HeaderParser::entry() {
  const std::uint64_t offset = reader_.offset();
  std::string name = reader_.string("the name of a tensor, in quotes");
  reader_.expect(':', "a : behind a name");
  if (name == metadata_name) {
    if (has_metadata_) refuse_format(path_, offset, "one __metadata__", "a second one");
    has_metadata_ = true;
    metadata();
  } else {
    tensor(std::move(name), offset);
  }
}

void HeaderParser::metadata() {
  if (reader_.take("null")) return;
  reader_.expect('{', "a { or null behind __metadata__");
  if (reader_.take('}')) return;
  std::vector<std::uint64_t> offsets;
  do {
    offsets.push_back(reader_.offset());
    std::string name = reader_.string("a name in quotes");
    reader_.expect(':', "a : behind a name");
    std::string value = reader_.string("a text in quotes: metadata is text");
    header_.metadata.emplace_back(std::move(name), std::move(value));
  } while (reader_.take(','));
  reader_.expect('}', "a comma or a } behind a text");
  Names names;
  for (std::size_t i = 0; i < offsets.size(); ++i) names.emplace_back(header_.metadata[i].first, offsets[i]);
  refuse_twice(names);
}

void HeaderParser::tensor(std::string name, std::uint64_t offset) {
  reader_.expect('{', "a { behind the name of a tensor");
  HeaderEntry entry{.name = std::move(name), .shape = {}, .offset = offset};
  bool has_dtype = false, has_shape = false, has_offsets = false;
  do {
    const std::uint64_t at = reader_.offset();
    const std::string field = reader_.string("dtype, shape or data_offsets, in quotes");
    reader_.expect(':', "a : behind a name");
    bool* const has = field == "dtype"          ? &has_dtype
                      : field == "shape"        ? &has_shape
                      : field == "data_offsets" ? &has_offsets
                                                : nullptr;
    if (has == nullptr) refuse_format(path_, at, "dtype, shape or data_offsets", quoted(field));
    if (std::exchange(*has, true)) refuse_format(path_, at, field + " once", "a second one");
    if (has == &has_dtype) {
      dtype(entry);
    } else if (has == &has_shape) {
      shape(entry);
    } else {
      offsets(entry);
    }
  } while (reader_.take(','));
  if (!has_dtype || !has_shape || !has_offsets) reader_.refuse("dtype, shape and data_offsets");
  reader_.expect('}', "a comma or a } behind a field");
  header_.entries.push_back(std::move(entry));
}

void HeaderParser::dtype(HeaderEntry& entry) {
  const std::uint64_t at = reader_.offset();
  const std::string name = reader_.string("the name of a type, in quotes");
  const std::optional<Dtype> found = find_dtype(name);
  if (!found.has_value()) refuse_format(path_, at, "a type of the format, as F32", quoted(name));
  entry.dtype = *found;
}

void HeaderParser::shape(HeaderEntry& entry) {
  reader_.expect('[', "a [ before a shape");
  if (reader_.take(']')) return;
  do {
    entry.shape.push_back(reader_.number("an extent"));
  } while (reader_.take(','));
  reader_.expect(']', "a comma or a ] behind an extent");
}

void HeaderParser::offsets(HeaderEntry& entry) {
  reader_.expect('[', "a [ before two offsets");
  entry.begin = reader_.number("an offset");
  reader_.expect(',', "a comma and a second offset");
  entry.end = reader_.number("an offset");
  reader_.expect(']', "a ] behind two offsets");
}

void HeaderParser::check_names() const {
  Names names;
  names.reserve(header_.entries.size());
  for (const HeaderEntry& entry : header_.entries) names.emplace_back(entry.name, entry.offset);
  refuse_twice(names);
}

void HeaderParser::refuse_twice(Names& names) const {
  std::sort(names.begin(), names.end());
  for (std::size_t i = 1; i < names.size(); ++i) {
    if (names[i].first == names[i - 1].first) {
      refuse_format(path_, names[i].second, "each name once", quoted(names[i].first) + " a second time");
    }
  }
}

void HeaderParser::check_offsets() const {
  const std::vector<HeaderEntry>& entries = header_.entries;
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&entries](std::size_t a, std::size_t b) {
    return entries[a].begin != entries[b].begin ? entries[a].begin < entries[b].begin : entries[a].end < entries[b].end;
  });
  const std::uint64_t all = size_ - header_.data_begin;
  std::uint64_t next = 0;
  for (const std::size_t i : order) {
    const HeaderEntry& entry = entries[i];
    std::uint64_t bytes = 0;
    if (!count_bytes(entry.dtype, entry.shape, bytes)) {
      refuse(entry, "a number of bytes below 2^64", "shape " + shape_text(entry.shape));
    }
    if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
      refuse(entry, std::to_string(bytes) + " bytes of " + std::string(name_of(entry.dtype)) + shape_text(entry.shape),
             offsets_text(entry));
    }
    if (entry.begin != next) {
      refuse(entry, "data_offsets from " + std::to_string(next) + ", where the tensor before it ends",
             offsets_text(entry));
    }
    if (entry.end > all) {
      refuse(entry, offsets_text(entry), "the end of the file, after " + std::to_string(all));
    }
    next = entry.end;
  }
  if (next != all) {
    refuse_format(path_, header_.data_begin + next, "the end of the file", std::to_string(all - next) + " bytes more");
  }
}

}}}  // namespace fanout::v0::detail
