// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace benchmarks {

/// One line of JSON: an object of numbers, texts, truths and lists of numbers, in the order in which they were set.
class Report {
 public:
  template <class N>
  requires std::is_arithmetic_v<N> Report& set(std::string_view key, N value) {
    if constexpr (std::same_as<N, bool>) return put(key, value ? "true" : "false");
    return put(key, number(static_cast<double>(value)));
  }

  Report& set(std::string_view key, std::string_view text) { return put(key, quoted(text)); }
  Report& set(std::string_view key, const char* text) { return put(key, quoted(text)); }
  Report& set_null(std::string_view key) { return put(key, "null"); }

  Report& set(std::string_view key, const std::vector<double>& values) {
    std::string list;
    for (const double value : values) list += (list.empty() ? "" : ", ") + number(value);
    return put(key, '[' + list + ']');
  }

  /// The number that a key was set to, as far as its text tells; 0 if there is none.
  double value_of(std::string_view key) const {
    for (const auto& [name, value] : members_) {
      if (name == key) return std::strtod(value.c_str(), nullptr);
    }
    return 0;
  }

  std::string line() const {
    std::string all;
    for (const auto& [key, value] : members_) all += (all.empty() ? "" : ", ") + quoted(key) + ": " + value;
    return '{' + all + '}';
  }

  void print() const {
    std::puts(line().c_str());
    std::fflush(stdout);
  }

 private:
  /// JSON knows neither infinity nor NaN.
  static std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text[0] == 'i' || text[0] == 'n' || text[1] == 'i' || text[1] == 'n' ? "null" : text;
  }

  static std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      result += c < ' ' ? ' ' : c;
    }
    return result + '"';
  }

  Report& put(std::string_view key, std::string value) {
    for (auto& member : members_) {
      if (member.first == key) {
        member.second = std::move(value);
        return *this;
      }
    }
    members_.emplace_back(key, std::move(value));
    return *this;
  }

  std::vector<std::pair<std::string, std::string>> members_;
};

}  // namespace benchmarks
