// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace interleavings {

/// The choices of one execution, in order. An execution repeats a prefix of choices, then takes the first option of
/// each further choice. next() moves on to the next execution of a depth-first search.
class Choices {
 public:
  /// Returns the option to take, less than `options`.
  std::size_t choose(std::size_t options) {
    if (options < 2) return 0;
    if (at_ == made_.size()) made_.push_back({0, options});
    Choice& choice = made_[at_++];
    if (choice.options == 0) choice.options = options;  // parsed from a text
    if (choice.options != options || choice.taken >= options) differs_ = true;
    return choice.taken < options ? choice.taken : 0;
  }

  /// True if a repeated execution met other choices: it depends on more than the choices.
  bool differs() const { return differs_; }

  /// Begins the execution again.
  void rewind() { at_ = 0; }

  /// Moves on to the next execution. False if there is none.
  bool next() {
    while (!made_.empty() && made_.back().taken + 1 >= made_.back().options) made_.pop_back();
    if (made_.empty()) return false;
    ++made_.back().taken;
    return true;
  }

  /// The choices that did not take the first option, as `12:1,30:2`.
  std::string to_string() const {
    std::string text;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (made_[i].taken == 0) continue;
      text += (text.empty() ? "" : ",") + std::to_string(i) + ":" + std::to_string(made_[i].taken);
    }
    return text.empty() ? "0:0" : text;
  }

  static Choices parse(std::string_view text) {
    Choices choices;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&] {
      std::size_t value = 0;
      at = std::from_chars(at, end, value).ptr;
      if (at < end) ++at;  // the separator
      return value;
    };
    while (at < end) {
      const std::size_t place = number();
      if (choices.made_.size() <= place) choices.made_.resize(place + 1, {0, 0});
      choices.made_[place].taken = number();
    }
    return choices;
  }

 private:
  struct Choice {
    std::size_t taken;
    std::size_t options;
  };

  std::vector<Choice> made_;
  std::size_t at_ = 0;
  bool differs_ = false;
};

}  // namespace interleavings
