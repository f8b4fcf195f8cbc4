// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace fanout_test {

/// The text of the E that `f()` throws; empty, and a failed check, if it throws none. Other exceptions pass.
template <class E, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  CHECK_MESSAGE(false, "nothing was thrown");
  return {};
}

/// Whether `text` has all of the words, in this order; says which is not there.
template <class... Words>
bool says(std::string_view text, Words... words) {
  std::size_t from = 0;
  for (const std::string_view word : {std::string_view(words)...}) {
    const std::size_t found = text.find(word, from);
    if (found == std::string_view::npos) {
      MESSAGE(std::string("not there: ") << std::string(word) << "\nin: " << std::string(text));
      return false;
    }
    from = found + word.size();
  }
  return true;
}

}  // namespace fanout_test
