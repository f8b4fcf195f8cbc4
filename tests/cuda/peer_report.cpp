// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/peer_report.hpp>

#include <doctest/doctest.h>

#include <string>

#include <fanout/cuda/runtime/availability.hpp>

#include "cuda/gpus.hpp"
#include "cuda/nothing_checked.hpp"
#include "support/message_of.hpp"

using fanout::cuda::peer_links;
using fanout::cuda::peer_report;
using fanout_test::has_gpus;
using fanout_test::says;
using fanout_test::Watched;

TEST_CASE("the report of peers without a device says why there is none") {
  if (fanout::cuda::is_available()) return;
  CHECK(peer_links().empty());
  CHECK(says(peer_report(), "No CUDA device is visible: ", fanout::cuda::unavailable_reason()));
}

TEST_CASE("links are listed from each GPU to each, and the report is their matrix") {
  if (!has_gpus(1)) return;
  const Watched watched;
  const auto links = peer_links();
  const auto count = static_cast<std::size_t>(fanout::cuda::device_count());
  REQUIRE(links.size() == count * count);
  std::size_t words = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    CHECK(links[i].from == static_cast<int>(i / count));
    CHECK(links[i].to == static_cast<int>(i % count));
    CHECK(links[i].direct == links[i].why.empty());
  }
  const std::string report = peer_report();
  CHECK(says(report, "from \\ to", "cuda:0", "\ncuda:0", "-"));
  for (const char* word : {" direct", " staged"}) {
    for (std::size_t at = report.find(word); at != std::string::npos; at = report.find(word, at + 1)) ++words;
  }
  CHECK(words == count * count - count);
  if (count > 1 && !links[1].direct) {
    CHECK(says(report, "cuda:0 and cuda:1 copy through the host's memory: " + links[1].why));
  }
}

TEST_CASE(
    "the report's columns have ten characters each, and each pair that copies by way of the host has its reason") {
  if (!fanout_test::has_stand_in(2)) return;
  const Watched watched;
  const fanout_test::NothingChecked unchecked;
  stand_in_set_peer(0, 1, 0);
  const int count = fanout::cuda::device_count();
  const auto column = [](std::string text) {
    text.resize(10, ' ');
    return text;
  };
  std::string expected = column("from \\ to");
  for (int to = 0; to < count; ++to) expected += column("cuda:" + std::to_string(to));
  for (int from = 0; from < count; ++from) {
    expected += '\n' + column("cuda:" + std::to_string(from));
    for (int to = 0; to < count; ++to) expected += column(from == to ? "-" : from + to == 1 ? "staged" : "direct");
  }
  expected += "\ncuda:0 and cuda:1 copy through the host's memory: the hardware has no access from cuda:0 to cuda:1\n";
  CHECK(peer_report() == expected);
}
