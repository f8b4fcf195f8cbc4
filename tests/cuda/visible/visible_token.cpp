// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/visible/visible_token.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

using fanout::cuda::VisibleToken;
using Fate = VisibleToken::Fate;

TEST_CASE("a token says which device it is, or why it is none") {
  CHECK(to_string(VisibleToken{.text = "3", .fate = Fate::device, .device = 0}) == "\"3\" is device 0");
  CHECK(to_string(VisibleToken{.text = "abc", .fate = Fate::no_number}) ==
        "\"abc\" ends the list: it does not begin with a number");
}

TEST_CASE("each fate has words of its own, and those that end the list say so") {
  std::set<std::string> words;
  for (int fate = static_cast<int>(Fate::device); fate <= static_cast<int>(Fate::second_mig); ++fate) {
    const VisibleToken token{.text = "", .fate = static_cast<Fate>(fate)};
    CAPTURE(fate);
    CHECK(words.insert(to_string(token)).second);
    CHECK(token.ends_list() == (to_string(token).find("ends the list") != std::string::npos));
  }
  CHECK(words.size() == 12);
}
