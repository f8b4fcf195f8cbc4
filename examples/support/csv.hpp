// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>

namespace examples {

/// A file that cannot be read, or not as the numbers it should hold. The message names the file, the line (from 1) and
/// what is wrong there.
class CsvError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The numbers that may stand in a column, both ends included.
struct Column {
  int least;
  int most;
};

namespace detail {

/// As it stands in the file, but short and printable.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 20;
  std::string shown(text.substr(0, longest));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + shown + (text.size() > longest ? "...\"" : "\"");
}

[[noreturn]] inline void refuse_csv(std::string what, std::string where, std::string expected, std::string found) {
  throw CsvError(fanout::explain({.what = std::move(what),
                                  .where = std::move(where),
                                  .expected = std::move(expected),
                                  .found = std::move(found)}));
}

inline int read_field(std::string_view field, const Column& column, const std::string& where) {
  int value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool whole = error != std::errc::invalid_argument && end == field.data() + field.size();
  if (!whole || error != std::errc{} || value < column.least || value > column.most) {
    refuse_csv(whole ? "a number out of range" : "not a whole number", where,
               std::to_string(column.least) + " to " + std::to_string(column.most), quoted(field));
  }
  return value;
}

inline std::vector<int> read_row(std::string_view line, const std::vector<Column>& columns, const std::string& where) {
  const auto found = static_cast<std::size_t>(std::ranges::count(line, ',')) + (line.empty() ? 0 : 1);
  if (found != columns.size()) {
    refuse_csv(found < columns.size() ? "too few columns" : "too many columns", where, std::to_string(columns.size()),
               std::to_string(found));
  }
  std::vector<int> row;
  row.reserve(columns.size());
  for (const Column& column : columns) {
    const std::string_view field = line.substr(0, line.find(','));
    row.push_back(read_field(field, column, where + ", column " + std::to_string(row.size() + 1)));
    line.remove_prefix(std::min(line.size(), field.size() + 1));
  }
  return row;
}

}  // namespace detail

/// The rows of a file of whole numbers with a comma between them and no header, at least one; each has a number for
/// every column. Lines may end in "\r\n", and the last one without either. Throws CsvError.
inline std::vector<std::vector<int>> read_csv(const std::string& path, const std::vector<Column>& columns) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw CsvError("cannot open the file " + path);
  std::vector<std::vector<int>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    rows.push_back(detail::read_row(line, columns, path + ", line " + std::to_string(rows.size() + 1)));
  }
  if (in.bad()) throw CsvError("cannot read the file " + path + " beyond line " + std::to_string(rows.size()));
  if (rows.empty()) detail::refuse_csv("an empty file", path + ", line 1", "at least one row", "none");
  return rows;
}

}  // namespace examples
