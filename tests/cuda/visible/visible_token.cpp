// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/visible/visible_token.hpp>

#include <doctest/doctest.h>

#include <string>

using fanout::cuda::VisibleToken;
using Fate = VisibleToken::Fate;

TEST_CASE("a token says which device it is, or why it is none") {
  CHECK(to_string(VisibleToken{.text = "3", .fate = Fate::device, .device = 0}) == "\"3\" is device 0");
  CHECK(to_string(VisibleToken{.text = "abc", .fate = Fate::no_number}) ==
        "\"abc\" ends the list: it does not begin with a number");
}

TEST_CASE("each outcome of a token has its own text, which says if it ends the list") {
  const auto says = [](Fate fate, const char* words) {
    const VisibleToken token{.text = "a", .fate = fate};
    CHECK(to_string(token) == std::string("\"a\" ") + words);
    CHECK(token.ends_list() == std::string(words).starts_with("ends the list: "));
  };
  says(Fate::device, "is a device");
  says(Fate::no_number, "ends the list: it does not begin with a number");
  says(Fate::negative, "ends the list: it is negative");
  says(Fate::out_of_range, "ends the list: there is no GPU of that number");
  says(Fate::no_uuid, "ends the list: the list began with GPU-, and this does not");
  says(Fate::no_mig, "ends the list: the list began with MIG-, and this does not");
  says(Fate::unknown, "ends the list: no GPU's uuid begins like this");
  says(Fate::ambiguous, "ends the list: the uuids of several GPUs begin like this");
  says(Fate::behind_end, "is not read: the list ended before it");
  says(Fate::repeated, "is named twice, which makes the whole list empty");
  says(Fate::emptied, "is no device: another one is named twice, which makes the whole list empty");
  says(Fate::second_mig, "is no device: CUDA shows a process one MIG instance, the first");
}
