// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mistakes of docs/guide/faq.md, and that the messages that the page quotes are those that are seen.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>

#include "support/environment.hpp"
#include "support/message_of.hpp"

namespace { namespace faq {

using fanout::broadcast;
using fanout::Context;
using fanout::host_devices;
using fanout::inout;
using fanout::Options;
using fanout::output;
using fanout::ParallelModel;
using fanout::pmean;
using fanout::Range;
using fanout::RowRange;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;

const std::filesystem::path root = std::filesystem::path(__FILE__).parent_path() / "../..";

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The words of a text with one space between them.
std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// Whether `message` is what a quote says, in which `…` stands for anything.
bool says_this(const std::string& quote, const std::string& message) {
  std::vector<std::string> parts{""};
  for (std::size_t i = 0; i < quote.size(); ++i) {
    if (quote.compare(i, 3, "…") != 0) {
      parts.back() += quote[i];
    } else {
      parts.emplace_back();
      i += 2;
    }
  }
  if (message.rfind(parts.front(), 0) != 0) return false;
  std::size_t at = 0;
  for (const std::string& part : parts) {
    const std::size_t found = message.find(part, at);
    if (found == std::string::npos) return false;
    at = found + part.size();
  }
  return at == message.size() || parts.back().empty() || message.ends_with(parts.back());
}

/// The sentences with which headers refuse to compile. Literals that stand side by side are one sentence.
std::vector<std::string> refusals() {
  std::vector<std::string> sentences;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "include")) {
    if (entry.path().extension() != ".hpp") continue;
    const std::string text = text_of(entry.path());
    for (std::size_t at = text.find("\"fanout: "); at != std::string::npos; at = text.find("\"fanout: ", at)) {
      std::string sentence;
      while (text[at] == '"') {
        const std::size_t end = text.find('"', at + 1);
        sentence += text.substr(at + 1, end - at - 1);
        at = std::min(text.find_first_not_of(" \n", end + 1), text.size() - 1);
      }
      sentences.push_back(std::move(sentence));
    }
  }
  return sentences;
}

/// What the page quotes: blocks of text, and the second columns of its tables.
struct Page {
  std::vector<std::string> blocks, cells;

  Page() {
    std::istringstream lines(text_of(root / "docs/guide/faq.md"));
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
      if (line == "```text") {
        inside = true;
        blocks.emplace_back();
      } else if (line == "```") {
        inside = false;
      } else if (inside) {
        blocks.back() += line + '\n';
      } else if (const std::size_t quote = line.find(" | `"); line.starts_with("| ") && quote != std::string::npos) {
        cells.push_back(line.substr(quote + 4, line.find("` | ", quote + 4) - quote - 4));
      }
    }
    for (std::string& block : blocks) block = in_one_line(block);
  }
};

constexpr std::string_view failed = "error: static assertion failed: ";

Tensor<float, 2> counted(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> x(rows, columns);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

}}  // namespace ::faq

TEST_CASE("the FAQ quotes what headers say when they refuse to compile") {
  const faq::Page page;
  const std::vector<std::string> sentences = faq::refusals();
  REQUIRE(sentences.size() > 50);
  std::size_t quoted = 0;
  const auto check = [&](const std::string& quote) {
    CAPTURE(quote);
    ++quoted;
    CHECK(std::any_of(sentences.begin(), sentences.end(),
                      [&](const std::string& sentence) { return faq::says_this(quote, sentence); }));
  };
  for (const std::string& block : page.blocks)
    if (block.starts_with(faq::failed)) check(block.substr(faq::failed.size()));
  for (const std::string& cell : page.cells)
    if (cell.starts_with("fanout: ")) check(cell);
  CHECK(quoted >= 15);
}

TEST_CASE("the FAQ quotes what errors say") {
  using namespace faq;
  std::vector<std::string> messages;
  const auto seen = [&](const auto& f) { messages.push_back(in_one_line(message_of<fanout::Error>(f))); };

  const auto x = counted(5, 3);
  const Tensor<float, 1> weights(3);
  const ParallelModel weighted{[](View<const float, 2> rows, View<const float, 1> by) { return rows(0, 0) * by[0]; },
                               host_devices(2)};
  seen([&] {
    // [rows]
    weighted(x, weights);  // [5, 3] and [3]
    // [/rows]
  });
  CHECK(weighted(x, broadcast(weights)).size() == 2);

  // [extents]
  const ParallelModel doubled{
      [](Context auto& ctx, View<const float, 2> rows) { return output<float>(ctx, rows.extent(0), rows.extent(1)); },
      host_devices(2)};
  // [/extents]
  seen([&] { doubled(x); });

  const auto look_up = [](View<const float, 2> rows) {
    if (rows.extent(0) == 2) throw std::out_of_range("no such word: 7");
    return rows;
  };
  const ParallelModel words{look_up, host_devices(2)};
  const ParallelModel alone{look_up, host_devices(2), Options{.rethrow_single = true}};
  seen([&] {
    // [catch]
    try {
      words(x);
    } catch (const std::out_of_range& error) {  // never reached
      std::abort();
    }
    // [/catch]
  });
  try {
    words(x);
  } catch (const fanout::ReplicaError& error) {
    CHECK(std::string(error.get_if<std::out_of_range>()->what()) == "no such word: 7");
  }
  CHECK_THROWS_AS(alone(x), std::out_of_range);

  seen([&] {
    // [device]
    const auto devices = host_devices({0, 4096});
    // [/device]
  });

  // [index]
  const ParallelModel firsts{[](View<const float, 2> rows, RowRange numbers) {
                               std::vector<float> first;
                               for (const std::size_t row : numbers) first.push_back(rows(row, 0));
                               return first;
                             },
                             host_devices(2)};
  // [/index]
  seen([&] { firsts(x, Range{5}); });
  const ParallelModel right{[](View<const float, 2> rows, RowRange numbers) {
                              std::vector<float> first;
                              for (const auto [local, global] : numbers.enumerate()) first.push_back(rows(local, 0));
                              return first;
                            },
                            host_devices(2)};
  CHECK(right(x, Range{5}) == std::vector<float>{0, 3, 6, 9, 12});

  Tensor<float, 1> rod(6);
  const ParallelModel smooth{[](Context auto& ctx, View<const float, 1> all, RowRange numbers) {
                               auto next = output<float>(ctx);
                               for (const auto [local, global] : numbers.enumerate())
                                 next[local] = (all[global] + all[(global + 1) % all.size()]) / 2;
                               return next;
                             },
                             host_devices(2)};
  seen([&] {
    // [into]
    smooth.into(rod)(broadcast(rod), Range{6});
    // [/into]
  });
  Tensor<float, 1> next(6);
  smooth.into(next)(broadcast(rod), Range{6});

  // [keys]
  const ParallelModel losses{[](Context auto& ctx, View<const float, 2> rows) {
                               std::map<std::string, float> loss{{"mean", rows(0, 0)}};
                               if (ctx.rank() == 0) loss["first"] = rows(0, 0);
                               return loss;
                             },
                             host_devices(2)};
  // [/keys]
  seen([&] { losses(x); });

  const auto row_count = [](RowRange rows) { return rows.size(); };
  seen([&] { const ParallelModel model{row_count, host_devices(3), Options{.split = fanout::WeightedSplit{50, 50}}}; });
  seen([&] {
    const ParallelModel model{[](Context auto& ctx, RowRange rows) { return ctx.random(*rows.begin())(); },
                              host_devices(2)};
    model(Range{5});
  });
  seen([&] {
    auto pending = ParallelModel{row_count, host_devices(2)}.async(Range{4});
    pending.get();
    pending.get();
  });
  seen([] {
    const fanout_test::EnvironmentVariable setting("FANOUT_HOST_DEVICES", "all");
    (void)host_devices();
  });

  seen([&] {
    Tensor<float, 2> small(5, 2);
    ParallelModel{[](View<const float, 2> rows) { return Tensor<float, 2>(rows); }, host_devices(2)}.into(small)(x);
  });
  const ParallelModel exchanges{[](Context auto& ctx) {
                                  auto comm = ctx.communicator();
                                  const std::size_t other = 1 - ctx.rank();
                                  Tensor<float, 1> row(3);
                                  comm.send(row, other);
                                  comm.recv(row, other);
                                },
                                host_devices(2)};
  seen([&] {
    try {
      exchanges(fanout::on_all());
    } catch (const fanout::ReplicaError& error) {
      throw fanout::Error(error.get_if<fanout::StructureMismatch>()->what());
    }
  });

  // Each is on the page, and nothing else.
  const Page page;
  const auto is_said = [&](const std::string& quote) {
    return std::any_of(messages.begin(), messages.end(),
                       [&](const std::string& message) { return says_this(quote, message); });
  };
  for (const std::string& message : messages) {
    CAPTURE(message);
    const auto quotes = [&](const std::string& quote) { return says_this(quote, message); };
    CHECK((std::any_of(page.blocks.begin(), page.blocks.end(), quotes) ||
           std::any_of(page.cells.begin(), page.cells.end(), quotes)));
  }
  for (const std::string& block : page.blocks) {
    CAPTURE(block);
    CHECK((block.starts_with(failed) || is_said(block)));
  }
  for (const std::string& cell : page.cells) {
    CAPTURE(cell);
    CHECK((cell.starts_with("fanout: ") || is_said(cell)));
  }
}
