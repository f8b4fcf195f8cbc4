// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace examples {

/// The values that a number may have, both ends included.
template <class T>
struct Range {
  T least;
  T most = std::numeric_limits<T>::max();
};

/// The command line of an example: flags `--name value` that are read into variables.
///
///     examples::Arguments arguments{"Trains a network."};
///     arguments.add("devices", devices, {1, 4096}, "how many devices");
///     arguments.parse(argc, argv);
///
/// What a variable holds when it is added is its default. The variables must outlive parse().
class Arguments {
 public:
  explicit Arguments(std::string purpose) : purpose_(std::move(purpose)) {}

  /// A number, whole if T is; parse() refuses others and those out of range.
  template <class T>
    requires(std::integral<T> || std::floating_point<T>)
  void add(std::string name, T& variable, std::type_identity_t<Range<T>> range, const std::string& meaning) {
    const std::string wanted = std::string(std::integral<T> ? "a whole number" : "a number") + describe(range);
    flags_.push_back({std::move(name), meaning + ": " + wanted + " (default " + written(variable) + ")", wanted,
                      [&variable, range](const std::string& text) { return read(text, range, variable); }});
  }

  /// Any text.
  void add(std::string name, std::string& variable, const std::string& meaning) {
    flags_.push_back({std::move(name), meaning + (variable.empty() ? "" : " (default " + variable + ")"), "a text",
                      [&variable](const std::string& text) {
                        variable = text;
                        return true;
                      }});
  }

  /// One of a few words.
  void add(std::string name, std::string& variable, const std::vector<std::string>& words, const std::string& meaning) {
    std::string wanted;
    for (const std::string& word : words) wanted += (wanted.empty() ? "" : " or ") + word;
    flags_.push_back({std::move(name), meaning + ": " + wanted + " (default " + variable + ")", wanted,
                      [&variable, words](const std::string& text) {
                        if (std::find(words.begin(), words.end(), text) == words.end()) return false;
                        variable = text;
                        return true;
                      }});
  }

  /// Reads the command line; of a flag that stands twice the last counts. `--help` prints the usage and ends the
  /// program with exit code 0; whatever is wrong is said on stderr, before the usage, and ends it with exit code 2.
  void parse(int argc, const char* const* argv) const {
    const std::string program = argc > 0 ? argv[0] : "example";
    for (int i = 1; i < argc; i += 2) {
      const std::string_view name = argv[i];
      if (name == "--help") {
        std::cout << usage(program);
        std::exit(0);
      }
      const Flag* const flag = find(name);
      if (flag == nullptr) refuse(program, "unknown argument " + std::string(name));
      if (i + 1 == argc || std::string_view(argv[i + 1]).starts_with("--")) {
        refuse(program, std::string(name) + " lacks its value: expected " + flag->wanted);
      }
      if (!flag->read(argv[i + 1])) {
        refuse(program, std::string(name) + ": expected " + flag->wanted + ", found \"" + argv[i + 1] + '"');
      }
    }
  }

 private:
  struct Flag {
    std::string name;
    std::string meaning;
    std::string wanted;
    std::function<bool(const std::string&)> read;  ///< false if the text is not what is wanted
  };

  /// The same in every locale, and with nothing before or after the number.
  template <class T>
  static bool read(const std::string& text, const Range<T>& range, T& variable) {
    // As the widest type of its kind: a stream would wrap "-1" into an unsigned number.
    std::conditional_t<std::integral<T>, long long, T> value{};
    std::istringstream in(text);
    in.imbue(std::locale::classic());
    in >> std::noskipws >> value;
    if (in.fail() || !in.eof()) return false;
    if constexpr (std::integral<T>) {
      if (std::cmp_less(value, range.least) || std::cmp_greater(value, range.most)) return false;
    } else {
      if (!(value >= range.least && value <= range.most)) return false;
    }
    variable = static_cast<T>(value);
    return true;
  }

  template <class T>
  static std::string written(T value) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << value;
    return out.str();
  }

  template <class T>
  static std::string describe(const Range<T>& range) {
    if (range.most == std::numeric_limits<T>::max()) return " of at least " + written(range.least);
    return " from " + written(range.least) + " to " + written(range.most);
  }

  const Flag* find(std::string_view name) const {
    for (const Flag& flag : flags_) {
      if (name == "--" + flag.name) return &flag;
    }
    return nullptr;
  }

  std::string usage(const std::string& program) const {
    std::size_t widest = 4;
    for (const Flag& flag : flags_) widest = flag.name.size() > widest ? flag.name.size() : widest;
    std::string text = purpose_ + "\nusage: " + program + " [--name value] ...\n";
    for (const Flag& flag : flags_) text += line(flag.name, widest, flag.meaning);
    return text + line("help", widest, "prints this");
  }
  static std::string line(const std::string& name, std::size_t widest, const std::string& meaning) {
    return "  --" + name + std::string(widest - name.size() + 2, ' ') + meaning + '\n';
  }

  [[noreturn]] void refuse(const std::string& program, const std::string& what) const {
    std::cerr << what << "\n\n" << usage(program);
    std::exit(2);
  }

  std::string purpose_;
  std::vector<Flag> flags_;
};

}  // namespace examples
